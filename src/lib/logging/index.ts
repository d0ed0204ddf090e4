export {
  BufferedLogSink,
  type BufferedLogSinkOptions,
  descriptorOutput,
  type LogOutput,
} from './buffered-sink.ts';
export type { LogFormat, LogRecord, Severity } from './format.ts';
export { logSize, rotateLog, tailLog } from './log-file.ts';
export {
  type CollectedLogs,
  collectLogs,
  createLogger,
  type Logger,
  type LoggerOptions,
  type LogSink,
} from './logger.ts';
export { type OpenLog, type OpenLogOptions, openLog } from './open-log.ts';
export { isSecretName, redactText } from './redact.ts';
export { RotatingLog, type RotatingLogOptions } from './rotating-log.ts';
export type { LogFields } from './values.ts';
export { type ModuleLevel, parseModuleLevels, Verbosity } from './verbosity.ts';
