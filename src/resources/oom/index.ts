export { hostKernelLog, type KernelLog, type KernelLogReader } from './kernel-log.ts';
export { oomLoop } from './oom-loop.ts';
export type { OomKill } from './oom-parser.ts';
export {
  type LogPosition,
  OomWatcher,
  type OomWatcherDeps,
  type PodOom,
  type PositionFile,
} from './oom-watcher.ts';
