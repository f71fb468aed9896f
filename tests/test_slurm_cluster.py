def test_a_job_runs_on_the_cluster(slurm_cluster, tmp_path):
    out = tmp_path / "out"
    slurm_cluster.call("sbatch", "--wait", f"--output={out}", "--wrap", "echo well")
    assert out.read_text() == "well\n"


def test_jobs_outlive_the_controller(slurm_cluster):
    slurm_cluster.call("sbatch", "--wrap", "sleep 60", "--output=/dev/null")
    before = slurm_cluster.jobs()
    slurm_cluster.wait_until_saved()
    slurm_cluster.kill_controller()
    slurm_cluster.start_controller()
    slurm_cluster.wait_until_up()
    assert slurm_cluster.jobs().keys() >= before.keys()
