export {
  abortable,
  cancelled,
  type DeadlineOptions,
  LinkedController,
  onAbort,
  outlasting,
  together,
  untilAborted,
  withDeadline,
} from './abort.ts';
export {
  type ReadJsonOptions,
  readJsonFile,
  removeLeftoverTemps,
  type WriteOptions,
  writeFileAtomic,
  writeJsonAtomic,
} from './atomic-file.ts';
export {
  Backoff,
  type BackoffEvent,
  type BackoffPolicy,
  type BackoffState,
  backoffDelayMs,
  nextBackoff,
} from './backoff.ts';
export * from './beneath/index.ts';
export {
  defaultPeriodUs,
  minShares,
  perSecondUs,
  sharesToWeight,
  weightToShares,
  wholePercentQuotaUs,
} from './cgroups/cgroup-math.ts';
export type { CgroupHost } from './cgroups/host.ts';
export * from './cgroups/index.ts';
export { cgroupMagic } from './cgroups/layout.ts';
export {
  apiTime,
  type Clock,
  checkedDelayMs,
  type Instant,
  instant,
  realClock,
  sleepOn,
  strictlyIncreasing,
  type Timer,
} from './clock.ts';
export {
  type DirectoryUsages,
  DiskWalker,
  type FileCount,
  type FileSystemSpace,
  spaceAt,
  spaceOf,
  type Tree,
  type TreeAnswer,
  type TreeUsage,
} from './disk-walk/index.ts';
export { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';
export { asError, describeError, isKind, KubelingError, kindOf } from './errors.ts';
export { EventFd } from './event-fd.ts';
export { formatFlagHelp } from './flag-help.ts';
export {
  boolFlag,
  choiceFlag,
  durationFlag,
  type FlagKind,
  flagError,
  intFlag,
  listFlag,
  type MapFlagOptions,
  mapFlag,
  multimapFlag,
  stringFlag,
  tryParseBool,
} from './flag-kinds.ts';
export {
  type Flag,
  type FlagProblem,
  type FlagTable,
  type FlagValues,
  flagName,
  type ParsedFlags,
  parseFlags,
} from './flags.ts';
export { fnv1a32 } from './fnv.ts';
export { goArchitecture } from './go-architecture.ts';
export {
  durationMs,
  durationNanos,
  formatDuration,
  formatDurationMs,
  parseDurationMs,
  tryParseDuration,
  tryParseDurationMs,
} from './go-duration.ts';
export { Heap, type HeapItem } from './heap.ts';
export { HintLatch } from './hint-latch.ts';
export {
  dialHttp,
  type FollowedReply,
  followHttp,
  type HttpDial,
  type HttpReply,
  type HttpRequest,
  hostPort,
  requestTarget,
} from './http-request.ts';
export { type BackoffTimes, KeyedBackoff, type KeyedBackoffOptions } from './keyed-backoff.ts';
export { KeyedMutex } from './keyed-mutex.ts';
export { libraryCalls } from './library-calls.ts';
export { type LockDeps, readLockOwner, withLockFile } from './lock-file.ts';
export { LogOnce } from './log-once.ts';
export * from './logging/index.ts';
export { loopDevicesOf } from './loop-devices.ts';
export { LruMap, type LruOptions } from './lru.ts';
export * from './metrics/index.ts';
export { type MountCalls, mountCalls } from './mount-calls.ts';
export { type Mount, mountOf, parseMountinfo, readMountTable } from './mountinfo.ts';
export { didYouMean, nearestName } from './nearest-name.ts';
export { nodeHttp } from './node-http.ts';
export { readFileIfExists, readFileWithin, readJsonIfSound } from './optional-file.ts';
export { Paced } from './paced.ts';
export { descendants, type ProcessIdentity, type ProcessInfo, ProcessTable, parseStat } from './processes.ts';
export {
  absoluteArgument,
  hasControlCharacters,
  type MountArguments,
  mountArguments,
  plainArgument,
  shownValue,
  umountArguments,
} from './program-arguments.ts';
export {
  addQuantities,
  compareQuantities,
  formatQuantity,
  milliQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityMilliValue,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
} from './quantity.ts';
export { jitter, pick, type Random, randomHex, randomInt, seededRandom, systemRandom } from './random.ts';
export { Ring } from './ring.ts';
export { type Command, type CommandEnd, type CommandResult, runChecked, runCommand } from './run-command.ts';
export { hostSilentMounts, SilentMounts } from './silent-mounts.ts';
export { SingleFlight } from './single-flight.ts';
export { Slices } from './slices.ts';
export { Slots } from './slots.ts';
export { stripControls } from './strip-controls.ts';
export { type Buffering, Subscription } from './subscription.ts';
export { type SubscriberFailed, TypedEvents } from './typed-events.ts';
export { Waiters } from './waiters.ts';
export { WorkQueue } from './work-queue.ts';
export { writeAll } from './write-all.ts';
export { isPlainYamlText, resolveYamlWord, type YamlScalar } from './yaml-scalar.ts';
export {
  type Place,
  readYaml,
  readYamlDocuments,
  type YamlDocument,
  type YamlEntry,
  type YamlProblem,
  type YamlText,
  type YamlTree,
  yamlToJs,
} from './yaml-tree.ts';
