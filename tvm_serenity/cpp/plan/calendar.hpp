// Which buffers are live in a stretch of sections, in time near linear in their number.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/instance.hpp"

namespace plan {

class Calendar {
 public:
  explicit Calendar(const Instance& in) : in_(in) {
    std::int64_t total = 0;
    for (int i = 0; i < in.count(); ++i) total += in.upper[i] - in.lower[i];
    days_ = std::max<int>(1, int(total / std::max(1, in.count())));
    const int blocks = in.sections / days_ + 1;
    begun_.resize(blocks), starting_.resize(blocks);
    for (int i = 0; i < in.count(); ++i) {
      starting_[in.lower[i] / days_].push_back(i);
      for (int b = in.lower[i] / days_ + 1; b <= (in.upper[i] - 1) / days_; ++b)
        begun_[b].push_back(i);
    }
  }

  // Calls visit(j) once for each buffer that is live in a section from `first` to before `last`.
  template <class Visit>
  void live(int first, int last, Visit visit) const {
    for (int j : begun_[first / days_])
      if (in_.upper[j] > first) visit(j);
    for (int b = first / days_; b <= (last - 1) / days_; ++b)
      for (int j : starting_[b])
        if (in_.lower[j] < last && in_.upper[j] > first) visit(j);
  }

 private:
  const Instance& in_;
  int days_;
  std::vector<std::vector<int>> begun_, starting_;
};

}  // namespace plan
