export {
  BufferedLogSink,
  type BufferedLogSinkOptions,
  descriptorOutput,
  type LogOutput,
} from './buffered-sink.ts';
export type { LogFormat, LogRecord, Severity } from './format.ts';
export {
  type CollectedLogs,
  collectLogs,
  createLogger,
  type Logger,
  type LoggerOptions,
  type LogRate,
  type LogSink,
  rateLimitedErrors,
} from './logger.ts';
export { isSecretName, redactText } from './redact.ts';
export {
  logSize,
  type OpenLog,
  type OpenLogOptions,
  openLog,
  RotatingLog,
  type RotatingLogOptions,
  rotateLog,
  tailLog,
} from './rotating-log.ts';
export type { LogFields } from './values.ts';
export { type ModuleLevel, parseModuleLevels, Verbosity } from './verbosity.ts';
