// The states of the search and their moves (rules R1 and R2 of docs/search.md).
#pragma once

#include <vector>

#include "schedule/closures.hpp"

namespace schedule {

struct Rules {
  bool blocks = true;   // R1
  bool commit = true;   // R2
  bool visited = true;  // R5
};

// A downset of finished ops, with values derived from it.
struct Node {
  std::vector<Word> set;
  std::vector<Word> complete;  // closures inside the set
  std::vector<int> active;     // incomplete closures without an incomplete cover
  Bytes live = 0;
};

struct Move {
  Bytes live;    // live bytes of the next state
  Bytes key;     // the largest need during the move
  int id;        // a closure, or an op where R1 is off
  int last;      // the op that must run last, or -1
  bool commits;  // R2: no other move needs to be tried

  friend bool operator<(const Move& a, const Move& b) {
    if (a.live != b.live) return a.live < b.live;
    if (a.key != b.key) return a.key < b.key;
    return a.id < b.id;
  }
};

template <int N>
class Moves {
 public:
  Moves(const Instance& instance, const Closures& closures, Rules rules);

  Node start() const;
  // All moves with a key within the budget, or only the first that commits. The least key above
  // the budget lowers `rejected`.
  void expand(const Node& node, Bytes budget, std::vector<Move>& moves, Bytes& rejected);
  void advance(const Node& node, const Move& move, Node& next);
  void block_of(const Node& node, const Move& move, Word* block) const;
  // Adds the ops of a block to the order: ascending, `last` at the end.
  void append(const Word* block, int last, std::vector<int>& order) const;
  bool is_full(const Node& node) const {
    return equal(node.set.data(), closures_.sets[closures_.count() - 1], width_);
  }
  Width<N> width() const { return width_; }

 private:
  struct Group {  // moves with the same block
    int id;
    int size;
    int workspace_op;
    bool minimal;
    std::vector<int> takers;  // ops that get their credit if they run last
  };

  void gather(const Node& node);
  bool add_group(const Node& node, Word candidate);
  bool consider_group(const Node& node, int group, Bytes budget, std::vector<Move>& moves,
                      Bytes& rejected);
  bool consider(const Node& node, const Word* block, Move move, Bytes extra, bool minimal,
                Bytes budget, std::vector<Move>& moves, Bytes& rejected);
  void expand_blocks(const Node& node, Bytes budget, std::vector<Move>& moves, Bytes& rejected);
  void expand_single(const Node& node, Bytes budget, std::vector<Move>& moves, Bytes& rejected);
  Bytes allocated(const Node& node, const Word* block);
  Bytes complete(const Node& node, const Word* after);
  bool dies_at(const Node& node, int storage, int op) const;

  const Instance& instance_;
  const Closures& closures_;
  Rules rules_;
  Width<N> width_;
  bool plain_;  // no workspace and nothing in place: every group is one closure

  // Scratch of expand() and advance().
  std::vector<Word> candidates_;  // size, closure and slot in one word, to sort by
  std::vector<Word> blocks_;  // of the candidates, by slot
  std::vector<Group> groups_;
  std::vector<Word> group_blocks_;
  int group_count_ = 0;
  std::vector<int> takers_;
  std::vector<int> completed_;
  std::vector<std::uint64_t> closure_mark_, storage_mark_;
  std::uint64_t stamp_ = 0;
  std::vector<Word> block_, after_;
};

extern template class Moves<0>;
extern template class Moves<1>;
extern template class Moves<2>;
extern template class Moves<3>;
extern template class Moves<4>;

}  // namespace schedule
