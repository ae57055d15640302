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
    Bytes at = 0;
    for (const Shelves::Held& held : shelves.live(in.lower[i], in.upper[i])) {
      if (held.end <= at) continue;
      if (at + in.size[i] <= held.start) break;
      at = align_up(held.end, in.alignment[i]);
    }
    offsets[i] = at;
    shelves.add(i, at);
  }
  return offsets;
}

}  // namespace plan
