import { BufferedLogSink, type LogOutput } from './buffered-sink.ts';
import { formatRecord } from './format.ts';
import { createLogger, type Logger, type LoggerOptions } from './logger.ts';

export interface OpenLogOptions extends Omit<LoggerOptions, 'sink'> {
  readonly output: LogOutput;
  readonly maxBuffered?: number;
}

export interface OpenLog {
  readonly logger: Logger;
  readonly sink: BufferedLogSink;
}

/** The log of a process: a logger, and the bounded buffer between it and the output, which tells of its gaps. */
export function openLog(options: OpenLogOptions): OpenLog {
  const { clock, format, output } = options;
  const pid = options.pid ?? process.pid;
  const gapLine = (dropped: number) =>
    formatRecord(format, pid, {
      severity: 'warning',
      level: 0,
      time: clock.now(),
      caller: { path: 'log', line: 0 },
      message: 'Lost log lines as the output was blocked',
      error: undefined,
      fields: { lines: dropped },
    });
  const bound = options.maxBuffered === undefined ? {} : { maxBuffered: options.maxBuffered };
  const sink = new BufferedLogSink({ clock, output, gapLine, ...bound });
  return { logger: createLogger({ ...options, sink }), sink };
}
