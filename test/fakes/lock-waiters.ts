import { readlinkSync } from 'node:fs';

/** The inode of the initial PID namespace in the kernel. */
const firstPidNamespace = 'pid:[4026531836]';

/**
 * Why waiters for a lock held by flock(1) cannot be found on this machine; false if they can.
 * Outside the initial PID namespace /proc/locks omits locks whose process has exited.
 */
export function withoutLockWaiters(): string | false {
  if (readlinkSync('/proc/self/ns/pid') === firstPidNamespace) return false;
  return 'the kernel shows who waits for such locks in the first namespace of processes only';
}
