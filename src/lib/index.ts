export {
  abortable,
  allOrAbort,
  cancelledError,
  type DeadlineOptions,
  LinkedController,
  onAbort,
  untilAborted,
  withAbortGrace,
  withDeadline,
} from './abort.ts';
export {
  Backoff,
  type BackoffEvent,
  type BackoffPolicy,
  type BackoffState,
  type BackoffTimes,
  backoffDelayMs,
  KeyedBackoff,
  type KeyedBackoffOptions,
  nextBackoff,
} from './backoff.ts';
export {
  defaultPeriodUs,
  minShares,
  perSecondUs,
  sharesToWeight,
  weightToShares,
  wholePercentQuotaUs,
} from './cgroups/cpu-values.ts';
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
  absoluteArgument,
  hasControlCharacters,
  type MountArguments,
  mountArguments,
  plainArgument,
  printableValue,
  stripControls,
  umountArguments,
} from './command-arguments.ts';
export {
  type DirectoryUsages,
  DiskWalker,
  type FileCount,
  type FileSystemSpace,
  spaceAt,
  spaceOf,
  type Tree,
  type TreeResult,
  type TreeUsage,
} from './disk-walk/index.ts';
export { type ErrorCode, type ErrorKind, errorKinds } from './error-codes.ts';
export { asError, describeError, errnoOf, isKind, KubelingError, kindOf } from './errors.ts';
export {
  type ReadJsonOptions,
  readBoundedFile,
  readFileIfExists,
  readJsonFile,
  readJsonIfValid,
  removeLeftoverTemps,
  type WriteOptions,
  writeFileAtomic,
  writeJsonAtomic,
} from './files.ts';
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
  formatFlagHelp,
  type ParsedFlags,
  parseFlags,
} from './flags.ts';
export { fnv1a32 } from './fnv.ts';
export {
  durationMs,
  formatDuration,
  formatDurationMs,
  parseDurationMs,
  tryParseDuration,
  tryParseDurationMs,
} from './go-duration.ts';
export { Heap, type HeapItem } from './heap.ts';
export { HintLatch } from './hint-latch.ts';
export {
  type FollowedResponse,
  followRedirects,
  type HttpRequest,
  type HttpResponse,
  joinHostPort,
  nodeHttp,
  requestTarget,
  type SendHttp,
  sendHttp,
} from './http-request.ts';
export { KeyedMutex } from './keyed-mutex.ts';
export { KeyedThrottle } from './keyed-throttle.ts';
export { libcFunctions, type MountSyscalls, mountSyscalls } from './libc.ts';
export { type ListeningSocket, listeningSockets } from './listening-sockets.ts';
export { type LockDeps, readLockOwner, withLockFile } from './lock-file.ts';
export { LogOnce } from './log-once.ts';
export * from './logging/index.ts';
export { LruMap, type LruOptions } from './lru.ts';
export * from './metrics/index.ts';
export { loopDevicesOf, type Mount, mountOf, parseMountinfo, readMountTable } from './mountinfo.ts';
export { didYouMean, nearestName } from './nearest-name.ts';
export {
  type CallMode,
  chmodSocket,
  type DirectoryHandle,
  directoryFlags,
  directoryNoFollowFlags,
  mountIdOf,
  openDirectoryHandle,
  openHandle,
} from './open-path.ts';
export { printable, printableLines } from './printable.ts';
export { descendants, type ProcessIdentity, type ProcessInfo, ProcessTable, parseStat } from './processes.ts';
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
export {
  clearingInodeFlags,
  ignoreMissing,
  isProtectionError,
  mountPointError,
  removeTree,
  rethrowUnlessMissing,
  type TreeCalls,
} from './remove-tree.ts';
export { Ring } from './ring.ts';
export { type Command, type CommandEnd, type CommandResult, runChecked, runCommand } from './run-command.ts';
export { Semaphore } from './semaphore.ts';
export { SingleFlight } from './single-flight.ts';
export { type Buffering, Subscription } from './subscription.ts';
export { isWritableByOthers, readTrustedFile, untrustedDirectory } from './trusted-directory.ts';
export { type SubscriberFailed, TypedEvents } from './typed-events.ts';
export { hostUnresponsiveMounts, UnresponsiveMounts } from './unresponsive-mounts.ts';
export { Waiters } from './waiters.ts';
export { WorkQueue } from './work-queue.ts';
export { writeAll } from './write-all.ts';
export {
  isPlainYamlText,
  readYaml,
  readYamlDocuments,
  resolvePlainScalar,
  type TextPosition,
  type YamlDocument,
  type YamlEntry,
  type YamlProblem,
  type YamlScalar,
  type YamlText,
  type YamlTree,
  yamlToJs,
} from './yaml-tree.ts';
export { nextTurn, YieldingCounter } from './yielding-counter.ts';
