/* CURE-UCB on linear-then-flat arms, as one would write it in C.

   The index is that of risingsearch/policies/rising/cure_ucb.py, whose parts change with an
   arm's own pulls only and are kept. Nothing else is: no mask of available arms, no
   checkpoints. Random numbers come from NumPy, so that a run is the same, pull by pull. */

#include <math.h>
#include <stdint.h>

#include "numpy/random/bitgen.h"

double random_standard_normal(bitgen_t *rng); /* of libnpyrandom */

typedef struct {
  int64_t pulls;
  double *sums; /* sums[n]: of the first n rewards */
  double average, slope; /* of the last h rewards */
  double average_spread, slope_spread; /* 2 / h and 3 / (4 h^3) */
  double last_two[2];
} Arm;

typedef struct {
  int64_t n_arms, horizon;
  double eps, sigma; /* sigma: NaN to estimate it */
  double bends, n_bends; /* sum and number of squared second differences */
} Policy;

static int64_t select_arm(const Policy *policy, const Arm *arms, int64_t t) {
  double sigma = policy->sigma;
  if (isnan(sigma))
    sigma = policy->n_bends > 0.0 ? sqrt(policy->bends / (6.0 * policy->n_bends)) : 0.0;
  double noise = sigma * sqrt(6.0 * log((double)t));
  double left = (double)(policy->horizon - t);
  double best = -INFINITY;
  int64_t chosen = 0;
  for (int64_t i = 0; i < policy->n_arms; i++) {
    const Arm *arm = &arms[i];
    double index = INFINITY;
    if (arm->pulls >= 2)
      index = arm->average + 0.5 * left * arm->slope +
              noise * sqrt(arm->slope_spread * left * left + arm->average_spread);
    if (index > best || (index == best && arm->pulls < arms[chosen].pulls)) {
      best = index;
      chosen = i;
    }
  }
  return chosen;
}

static void update(Policy *policy, Arm *arm, double reward) {
  int64_t n = ++arm->pulls;
  arm->sums[n] = arm->sums[n - 1] + reward;
  if (n > 2) {
    double bend = reward - 2.0 * arm->last_two[1] + arm->last_two[0];
    policy->bends += bend * bend;
    policy->n_bends += 1.0;
  }
  arm->last_two[0] = arm->last_two[1];
  arm->last_two[1] = reward;
  if (n >= 2) {
    int64_t window = (int64_t)(policy->eps * (double)n);
    if (window < 1) window = 1;
    double h = (double)window;
    double a = arm->sums[n] - arm->sums[n - window];
    double b = arm->sums[n - window] - arm->sums[n - 2 * window];
    arm->average = a / h;
    arm->slope = (a - b) / (h * h);
    arm->average_spread = 2.0 / h;
    arm->slope_spread = 0.75 / (h * h * h);
  }
}

/* Play one run: fill in the pulls of every arm, and return the sum of the means.
   sums: zeros, (n_arms, horizon + 1). */
double play(int64_t n_arms, int64_t horizon, double eps, double sigma,
            const double *slopes, const double *plateaus, double noise, bitgen_t *rng,
            double *sums, int64_t *pulls) {
  Policy policy = {n_arms, horizon, eps, sigma, 0.0, 0.0};
  Arm arms[n_arms];
  for (int64_t i = 0; i < n_arms; i++)
    arms[i] = (Arm){.sums = sums + i * (horizon + 1)};
  double total = 0.0;
  for (int64_t t = 1; t <= horizon; t++) {
    int64_t i = select_arm(&policy, arms, t);
    double mean = fmin(plateaus[i], slopes[i] * (double)(arms[i].pulls + 1));
    total += mean;
    update(&policy, &arms[i], mean + noise * random_standard_normal(rng));
  }
  for (int64_t i = 0; i < n_arms; i++) pulls[i] = arms[i].pulls;
  return total;
}
