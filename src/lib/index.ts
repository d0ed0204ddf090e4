export { abortable, cancelled, LinkedController, onAbort, withDeadline } from './abort.ts';
export { type Clock, type Instant, instant, realClock, type Timer } from './clock.ts';
export { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';
export { asError, describeError, isKind, KubelingError, kindOf } from './errors.ts';
export { jitter, pick, type Random, randomHex, randomInt, seededRandom, systemRandom } from './random.ts';
export { settle, VirtualClock } from './virtual-clock.ts';
