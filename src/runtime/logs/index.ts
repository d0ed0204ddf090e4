export {
  type ContainerLogRequest,
  ContainerLogs,
  type ContainerLogsDeps,
  type OpenedLog,
} from './container-logs.ts';
export type { LogView } from './log-decoder.ts';
export type { LogFiles, LogHandle, LogHint } from './log-files.ts';
export { LogFollowers } from './log-followers.ts';
export { type ChosenInstance, chooseLogInstance, type WantedInstance } from './log-instance.ts';
export type { LogStream } from './log-line.ts';
export { type LogTime, parseLogTime } from './log-time.ts';

export { realLogFiles } from './real-log-files.ts';
