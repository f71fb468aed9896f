"""Scripts in the jobs of a Slurm cluster: every slice of training is a job."""
