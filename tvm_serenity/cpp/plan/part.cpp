#include "plan/part.hpp"

namespace plan {

Instance part_of(const Instance& in, const std::vector<int>& chosen) {
  Instance part;
  part.sections = in.sections;
  for (int i : chosen) {
    part.lower.push_back(in.lower[i]), part.upper.push_back(in.upper[i]);
    part.size.push_back(in.size[i]), part.alignment.push_back(in.alignment[i]);
    part.fixed.push_back(in.fixed[i]);
  }
  part.partners.resize(chosen.size()), part.below.resize(chosen.size());
  part.paired.resize(chosen.size());
  return part;
}

}  // namespace plan
