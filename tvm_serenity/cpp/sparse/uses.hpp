// An order as an array and as lists of each neuron's uses, with the moves of Connection Reordering:
// a move costs time for the moved connections alone, not for those in between.
//
// A use is numbered by its connection: 2 * connection + side. A move is tried without a new array:
// moved connections form rows, each in the gap before a position of the old order. Labels order all
// connections as tried, moved or not.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/network.hpp"

namespace sparse {

using Label = std::int64_t;

class Uses {
 public:
  // A use whose interval (from the neuron's use before it) changed, and where that began.
  struct Changed {
    int use, began;
  };

  // Moved connections in the gap before a position of the old order.
  struct Row {
    int gap;
    std::vector<int> connections;
  };

  Uses(const Network& net, const std::vector<int>& order);

  // Move the window's connections, each to its place; false: none moved. `order` has the old
  // order until `keep`.
  bool move(int first, int last, bool left);
  // Move positions `first` to `last` as a block, to the last (next) other connection with the
  // neuron of a use of one of them, or as far as the order allows; false: nothing moved.
  bool move_block(int first, int last, bool left, int use);
  void keep();
  void undo();

  const std::vector<int>& order() const { return order_; }
  int size() const { return static_cast<int>(order_.size()); }
  int position(int connection) const { return position_[connection]; }  // in the old order
  int low() const { return low_; }  // old positions of all that a move shifts
  int high() const { return high_; }
  const std::vector<int>& stretch();  // the new order there, from `low` to `high`

  Label label(int connection) const { return label_[connection]; }
  Label key(int use) const { return 2 * label_[use >> 1] + (use & 1); }
  bool moved(int connection) const { return has_moved_[connection]; }
  int gap(int connection) const { return static_cast<int>(label_[connection] >> 31); }
  const std::vector<int>& moved() const { return moved_; }
  const Row* row(int gap) const { return row_at_[gap] < 0 ? nullptr : &rows_[row_at_[gap]]; }

  const std::vector<Changed>& changed() const { return changed_; }
  int before(int use) const { return before_[use]; }
  int after(int use) const { return after_[use]; }
  int neuron(int use) const { return use & 1 ? net_.target[use >> 1] : net_.source[use >> 1]; }

 private:
  struct Relinked {
    int use, before;
  };

  // A row's connections come before the one whose position is its gap.
  static constexpr Label kUnmoved = (Label{1} << 31) - 1;
  static Label label_of(int gap, Label rank) { return (static_cast<Label>(gap) << 31) | rank; }

  void move_left(int connection);
  void move_right(int connection);
  int gap_left(int first, int last, int use) const;
  int gap_right(int first, int last, int use) const;
  void sink_left(int use);
  void sink_right(int use);
  bool measure();
  void put(int connection, int gap, int next_to, bool behind);
  Row& row_of(int gap);
  void relink(int use, int before);
  void link(int use, int before);
  void unlink(int use);
  void note(int use);
  void clear();

  const Network& net_;
  std::vector<int> order_, position_;
  std::vector<Label> label_;
  std::vector<int> before_, after_, head_;
  std::vector<int> moved_;
  std::vector<char> has_moved_;
  std::vector<Row> rows_;  // those in use come first
  std::size_t rows_used_ = 0;
  std::vector<int> row_at_;  // of each gap: its row, or -1
  std::vector<Changed> changed_;
  std::vector<char> noted_;
  std::vector<Relinked> relinked_;
  std::vector<int> stretch_;
  int low_ = 0, high_ = -1;
};

}  // namespace sparse
