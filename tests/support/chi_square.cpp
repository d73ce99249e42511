// SPDX-License-Identifier: Apache-2.0
// Chi-square by the regularised incomplete gamma function: series below the mean, continued fraction above
// (Abramowitz and Stegun 6.5.29 and 6.5.31).
#include "support/chi_square.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ts::test {

double chi_square_p_value(double x, double degrees) {
  const double a = degrees / 2;
  const double z = x / 2;
  if (z <= 0) return 1.0;
  const double front = std::exp(a * std::log(z) - z - std::lgamma(a));
  if (z < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-16; ++n) sum += term *= z / n;
    return 1 - front * sum;
  }
  // Lentz's method for the continued fraction of the upper tail.
  double b = z + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < 100000; ++i) {
    const double n = -i * (i - a);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    h *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return front * h;
}

double chi_square_of(const std::vector<long>& counts, const std::vector<double>& probabilities) {
  const double n = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0L));
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return probabilities[a] < probabilities[b]; });
  double statistic = 0, expected = 0, observed = 0;
  int cells = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t cell = order[i];
    if (probabilities[cell] <= 0) {
      if (counts[cell] != 0) return 0;
      continue;
    }
    expected += n * probabilities[cell];
    observed += static_cast<double>(counts[cell]);
    // The last group takes what is left, so that none is smaller than 10.
    double rest = 0;
    for (size_t j = i + 1; j < order.size() && rest < 10; ++j) rest += n * probabilities[order[j]];
    if (expected < 10 || (rest < 10 && i + 1 < order.size())) continue;
    statistic += (observed - expected) * (observed - expected) / expected;
    expected = observed = 0;
    ++cells;
  }
  return cells > 1 ? chi_square_p_value(statistic, cells - 1) : 1.0;
}

double independence_of(const std::vector<std::vector<long>>& table) {
  const size_t n_rows = table.size(), n_columns = table[0].size();
  std::vector<double> rows(n_rows), columns(n_columns);
  double total = 0;
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t c = 0; c < n_columns; ++c) {
      rows[r] += static_cast<double>(table[r][c]);
      columns[c] += static_cast<double>(table[r][c]);
      total += static_cast<double>(table[r][c]);
    }
  }
  double statistic = 0;
  for (size_t r = 0; r < n_rows; ++r) {
    for (size_t c = 0; c < n_columns; ++c) {
      const double expected = rows[r] * columns[c] / total;
      const double difference = static_cast<double>(table[r][c]) - expected;
      statistic += difference * difference / expected;
    }
  }
  return chi_square_p_value(statistic, static_cast<double>((n_rows - 1) * (n_columns - 1)));
}

}  // namespace ts::test
