// SPDX-License-Identifier: Apache-2.0
// Chi-square tests of counts against probabilities.
#pragma once

#include <vector>

namespace ts::test {

// P(X >= x) for a chi-square variable with that many degrees of freedom.
double chi_square_p_value(double x, double degrees);

// The p-value of counts under probabilities (which sum to 1). Cells are grouped, smallest first, until each expects at
// least 10; a count where the probability is 0 gives 0.
double chi_square_of(const std::vector<long>& counts, const std::vector<double>& probabilities);

// The p-value of independence of the rows and columns of a table of counts.
double independence_of(const std::vector<std::vector<long>>& table);

}  // namespace ts::test
