// An order as an array and as the list of each neuron's uses, and the moves of Connection
// Reordering on them: the cost of a move is what moves, not what lies in between.
//
// A use is named by its connection here: 2 * connection + side.
#pragma once

#include <vector>

#include "sparse/network.hpp"

namespace sparse {

class Uses {
 public:
  // A use whose interval (from the neuron's use before it) changed, and where that began.
  struct Changed {
    int use, began;
  };

  Uses(const Network& net, const std::vector<int>& order);

  // Move the window's connections, each to its place; false: none moved. Until `keep` or `undo`,
  // `order` has the old order and `tried` the new one; they differ in [low, high] only.
  bool move(int first, int last, bool left);
  void keep();
  void undo();

  const std::vector<int>& order() const { return order_; }
  const std::vector<int>& tried() const { return tried_; }
  int low() const { return low_; }
  int high() const { return high_; }
  int size() const { return static_cast<int>(order_.size()); }
  int position(int connection) const { return position_[connection]; }  // in tried
  int key(int use) const { return 2 * position_[use >> 1] + (use & 1); }
  bool moved(int connection) const { return gap_[connection] >= 0; }
  const std::vector<int>& moved() const { return moved_; }
  const std::vector<Changed>& changed() const { return changed_; }
  int before(int use) const { return before_[use]; }
  int after(int use) const { return after_[use]; }
  int neuron(int use) const { return use & 1 ? net_.target[use >> 1] : net_.source[use >> 1]; }

 private:
  struct Relinked {
    int use, before;
  };

  // Moved connections stand in the gap before a position of the old order, in a row.
  struct Row {
    int gap;
    std::vector<int> connections;
  };

  void move_left(int connection);
  void move_right(int connection);
  void put(int connection, int gap, int next_to, bool behind);
  bool precedes(int connection, int other) const;
  void relink(int use, int before);
  void link(int use, int before);
  void unlink(int use);
  void note(int use);
  void write();
  Row& row_of(int gap);

  const Network& net_;
  std::vector<int> order_, tried_, position_;
  std::vector<int> before_, after_, head_;
  std::vector<int> gap_, rank_;  // of each connection that moved: its gap, its place in the row
  std::vector<int> moved_;
  std::vector<Row> rows_;  // those in use come first
  std::size_t rows_used_ = 0;
  std::vector<Changed> changed_;
  std::vector<char> noted_;
  std::vector<Relinked> relinked_;
  int low_ = 0, high_ = -1;
};

}  // namespace sparse
