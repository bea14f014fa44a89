// Hash tables for the timed passes: 64-bit keys, open addressing, cleared in constant time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace timing {

inline uint64_t mix(uint64_t key) {
  key ^= key >> 31;
  key *= 0xBF58476D1CE4E5B9ull;
  return key ^ (key >> 29);
}

template <class Value>
class Table {
 public:
  Table() : entries_(1024) {}

  // The key's value, default-made where it was missing; `added` says which.
  Value& at(uint64_t key, bool& added) {
    if (2 * size_ >= entries_.size()) grow();
    Entry& e = entries_[find(key)];
    added = e.generation != generation_;
    if (added) {
      e = Entry{key, generation_, Value{}};
      size_++;
    }
    return e.value;
  }

  const Value* get(uint64_t key) const {
    const Entry& e = entries_[find(key)];
    return e.generation == generation_ ? &e.value : nullptr;
  }

  void clear() {
    generation_++;
    size_ = 0;
  }

  size_t size() const { return size_; }

  template <class F>
  void each(F&& f) const {
    for (const Entry& e : entries_)
      if (e.generation == generation_) f(e.key, e.value);
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t generation = 0;
    Value value{};
  };
  std::vector<Entry> entries_;
  uint32_t generation_ = 1;
  size_t size_ = 0;

  size_t find(uint64_t key) const {
    size_t mask = entries_.size() - 1, i = mix(key * 0x9E3779B97F4A7C15ull) & mask;
    while (entries_[i].generation == generation_ && entries_[i].key != key) i = (i + 1) & mask;
    return i;
  }

  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (Entry& e : old)
      if (e.generation == generation_) entries_[find(e.key)] = e;
  }
};

}  // namespace timing
