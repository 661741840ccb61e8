// SPDX-License-Identifier: Apache-2.0
// The objects of one kind that exist. Who looks at them keeps them from being destroyed meanwhile.
#pragma once

#include <mutex>
#include <vector>

namespace softnic {

template <class T>
class ObjectList {
 public:
  void add(T& object) {
    const std::lock_guard guard(mutex_);
    objects_.push_back(&object);
  }
  void remove(T& object) {
    const std::lock_guard guard(mutex_);
    std::erase(objects_, &object);
  }
  template <class F>
  void for_each(F&& visit) {
    const std::lock_guard guard(mutex_);
    for (T* object : objects_) visit(*object);
  }

 private:
  std::mutex mutex_;
  std::vector<T*> objects_;
};

}  // namespace softnic
