// The difference in fast memory between the schedules of two orders at one point.
#pragma once

#include <vector>

#include "sparse/evictions.hpp"
#include "sparse/uses.hpp"

namespace sparse {

class Difference {
 public:
  explicit Difference(const Uses& uses)
      : uses_(uses), flags_(2 * uses.size(), 0), slot_(2 * uses.size(), 0) {}

  bool none() const { return only_new_.empty() && only_old_ == 0; }
  int count() const { return static_cast<int>(only_new_.size()) - only_old_; }
  int only_old() const { return only_old_; }
  bool has_changed(int use) const { return flags_[use] & kChanged; }  // and began in one only
  bool is_plain(int use) const { return flags_[use] == 0; }
  bool in_old(int use) const { return flags_[use] & kOld; }
  bool in_new(int use) const { return flags_[use] & kNew; }
  bool differs(int use) const { return flags_[use] & (kChanged | kOld | kNew); }
  bool in_one(int use) const { return flags_[use] & (kOld | kNew); }

  void change(int use) { flags_[use] |= kChanged; }
  void merge(int use) { flags_[use] = kMerged; }
  void add_old(int use) {
    flags_[use] |= kOld;
    ++only_old_;
  }
  void add_new(int use) {
    if (only_new_.empty() || (top_ >= 0 && uses_.key(use) > uses_.key(top_))) top_ = use;
    flags_[use] |= kNew;
    slot_[use] = static_cast<int>(only_new_.size());
    only_new_.push_back(use);
  }
  void remove_old(int use) {
    only_old_ -= in_old(use);
    flags_[use] &= ~kOld;
  }
  void remove_new(int use) {
    if (!in_new(use)) return;
    flags_[use] &= ~kNew;
    const int last = only_new_.back();
    only_new_[slot_[use]] = last;
    slot_[last] = slot_[use];
    only_new_.pop_back();
    if (top_ == use) top_ = -1;
  }
  void forget(int use) {
    remove_old(use);
    remove_new(use);
    flags_[use] = 0;
  }

  // Of what only the new schedule has, the interval that ends last; -1 if there is nothing.
  int top() {
    if (only_new_.empty()) return -1;
    if (top_ < 0) {
      Label last = -1;
      for (int use : only_new_) {
        const Label key = uses_.key(use);
        if (key > last) {
          last = key;
          top_ = use;
        }
      }
    }
    return top_;
  }

 private:
  enum : unsigned char { kChanged = 1, kMerged = 2, kOld = 4, kNew = 8 };

  const Uses& uses_;
  std::vector<unsigned char> flags_;
  std::vector<int> slot_, only_new_;
  int only_old_ = 0;
  int top_ = -1;  // -1: not known
};

}  // namespace sparse
