#include "sparse/network.hpp"

#include <utility>

namespace sparse {

Network::Network(std::vector<int> from, std::vector<int> to, std::vector<char> asked)
    : neurons(static_cast<int>(asked.size())), source(std::move(from)), target(std::move(to)),
      fan_in(neurons, 0), fan_out(neurons, 0), output(std::move(asked)) {
  for (int s : source) ++fan_out[s];
  for (int t : target) ++fan_in[t];
}

Rows::Rows(int neurons, const std::vector<int>& end) : first(neurons + 1, 0), connection(end.size()) {
  for (int v : end) ++first[v + 1];
  for (int v = 0; v < neurons; ++v) first[v + 1] += first[v];
  std::vector<int> at(first.begin(), first.end() - 1);
  for (std::size_t c = 0; c < end.size(); ++c) connection[at[end[c]]++] = static_cast<int>(c);
}

}  // namespace sparse
