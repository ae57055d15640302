#include "plan/many.hpp"

#include "plan/shelves.hpp"

namespace plan {

std::vector<Bytes> place_among_many(const Instance& in, const std::vector<int>& order,
                                    Limit& limit) {
  std::vector<Bytes> offsets(in.fixed);
  Shelves shelves(in);
  shelves.fill(offsets);
  for (int i : order) {
    if (offsets[i] >= 0) continue;
    if (limit.tick()) return {};
    const Bytes at = shelves.lowest_gap(i);
    offsets[i] = at;
    shelves.add(i, at);
  }
  return offsets;
}

}  // namespace plan
