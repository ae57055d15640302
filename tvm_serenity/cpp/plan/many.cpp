#include "plan/many.hpp"

#include <algorithm>

#include "plan/calendar.hpp"

namespace plan {

std::vector<Bytes> place_among_many(const Instance& in, const std::vector<int>& order,
                                    Limit& limit) {
  std::vector<Bytes> offsets(in.fixed);
  const Calendar calendar(in);
  std::vector<std::pair<Bytes, Bytes>> held;  // start and end
  for (int i : order) {
    if (offsets[i] >= 0) continue;
    if (limit.tick()) return {};
    held.clear();
    calendar.live(in.lower[i], in.upper[i], [&](int j) {
      if (offsets[j] >= 0) held.push_back({offsets[j], offsets[j] + in.size[j]});
    });
    std::sort(held.begin(), held.end());
    Bytes at = 0;
    for (const auto& [start, end] : held) {
      if (end <= at) continue;
      if (at + in.size[i] <= start) break;
      at = align_up(end, in.alignment[i]);
    }
    offsets[i] = at;
  }
  return offsets;
}

}  // namespace plan
