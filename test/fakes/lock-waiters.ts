import { readlinkSync } from 'node:fs';

/** The number that the kernel gives the initial PID namespace. */
const firstPidNamespace = 'pid:[4026531836]';

/**
 * Why a lock taken by the program flock shows no waiters here; false if it does. In any other
 * namespace /proc/locks omits locks whose process has exited.
 */
export function withoutLockWaiters(): string | false {
  if (readlinkSync('/proc/self/ns/pid') === firstPidNamespace) return false;
  return 'the kernel shows who waits for such locks in the first namespace of processes only';
}
