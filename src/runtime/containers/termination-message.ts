import { posix } from 'node:path';
import type { ContainerStatus } from '../../cri/index.ts';
import { describeError, KubelingError } from '../../lib/index.ts';
import { LogDecoder } from '../logs/log-decoder.ts';
import { readContainerAnnotations, readOwner } from './labels.ts';
import type { RuntimeFiles } from './runtime-files.ts';

const maxFileBytes = 4_096;
const maxLogBytes = 2_048;
const maxLogLines = 80;
/** The size of the first read of a log: large enough for 80 lines with timestamps. */
const logReadBytes = 64 << 10;
/** The size of the second read of a log, for runtimes that do not split long lines. */
const longLineReadBytes = 4 << 20;

export interface MessageSource {
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'readLogEnd'>;
  readonly podLogsDir: string;
}

/** The termination message of a container. */
export interface TerminationMessage {
  readonly text: string;
  /**
   * `unread` if the termination message file or the log is missing or could not be read; both are
   * read again at the next observation of the container.
   */
  readonly state: 'read' | 'unread';
}

/**
 * Returns the termination message of an exited container, appended to the runtime's own message.
 */
export async function terminationMessage(
  status: ContainerStatus,
  source: MessageSource,
): Promise<TerminationMessage> {
  const own = await ownMessage(status, source);
  return { ...own, text: [status.message, own.text].filter((text) => text !== '').join(': ') };
}

async function ownMessage(status: ContainerStatus, source: MessageSource): Promise<TerminationMessage> {
  const path = terminationMessageFile(status);
  try {
    const bytes = path === undefined ? undefined : await source.files.readEnd(path, maxFileBytes);
    if (bytes !== undefined && bytes.length > 0) return { text: bytes.toString(), state: 'read' };
  } catch (error) {
    const text = `Error on reading termination log ${path}: ${describeError(error)}`;
    return { text, state: 'unread' };
  }
  return mayUseLog(status) ? await endOfLog(status, source) : { text: '', state: 'read' };
}

/**
 * The last mount at a path hides the others, so the kubelet's file is not read if a volume is
 * mounted over it.
 */
function hostPathOfMessage({ annotations, mounts }: ContainerStatus): string | undefined {
  const path = readContainerAnnotations(annotations).terminationMessagePath;
  if (path === '') return undefined;
  return mounts.findLast(({ containerPath }) => containerPath === posix.resolve('/', path))?.hostPath;
}

/**
 * Returns the termination message file that was created for this container and is removed with it;
 * undefined when another file is mounted at the path.
 */
export function terminationMessageFile(status: ContainerStatus): string | undefined {
  const owner = readOwner(status.labels);
  const path = hostPathOfMessage(status);
  if (owner === undefined || path === undefined) return undefined;
  const [file = '', name, kind, uid] = path.split('/').reverse();
  const isOwn = uid === owner.uid && kind === 'containers' && name === owner.containerName;
  return isOwn && /^[0-9a-f]{8}$/.test(file) ? path : undefined;
}

/** A container that failed to start has no log. */
function mayUseLog({ annotations, exitCode, reason }: ContainerStatus): boolean {
  const policy = readContainerAnnotations(annotations).terminationMessagePolicy;
  return policy === 'FallbackToLogsOnError' && exitCode !== 0 && reason !== 'ContainerCannotRun';
}

async function endOfLog(
  status: ContainerStatus,
  { files, podLogsDir }: MessageSource,
): Promise<TerminationMessage> {
  const read: ReadLog = (bytes) => files.readLogEnd(podLogsDir, status.logPath, bytes);
  try {
    checkOwnLog(status, podLogsDir);
    const shown = (await shownIn(read, logReadBytes)) ?? (await shownIn(read, longLineReadBytes));
    if (shown === undefined) return { text: '', state: 'unread' };
    return { text: shown.subarray(-maxLogBytes).toString(), state: 'read' };
  } catch (error) {
    return {
      text: `Error on reading termination message from logs: ${describeError(error)}`,
      state: 'unread',
    };
  }
}

/** Throws unless the log is in the log directory of the container's pod. */
function checkOwnLog({ labels, logPath }: ContainerStatus, podLogsDir: string): void {
  const owner = readOwner(labels);
  const [directory] = posix.relative(podLogsDir, logPath).split('/');
  if (owner !== undefined && directory === `${owner.namespace}_${owner.podName}_${owner.uid}`) return;
  throw new KubelingError(
    'LOG_REFUSED',
    `Cannot read the log ${logPath} as it is outside of the log directory of this pod`,
  );
}

type ReadLog = (maxBytes: number) => Promise<Buffer | undefined>;

/**
 * Returns the last lines of the log; undefined when too few bytes were read, because the last lines
 * begin earlier.
 */
async function shownIn(read: ReadLog, readBytes: number): Promise<Buffer | undefined> {
  const bytes = await read(readBytes);
  if (bytes === undefined) return undefined;
  const start = startOfLines(bytes, maxLogLines);
  const decoder = new LogDecoder({});
  const shown = Buffer.concat([decoder.decode(bytes.subarray(start)), decoder.endFile()]);
  const isEnough = start > 0 || bytes.length < readBytes || shown.length >= maxLogBytes;
  return isEnough || readBytes === longLineReadBytes ? shown : undefined;
}

/** Returns where the given number of last lines starts; 0 when the text has no more lines. */
function startOfLines(bytes: Buffer, lines: number): number {
  let at = bytes.length - 1;
  for (let found = 0; found < lines && at > 0; found++) at = bytes.lastIndexOf(0x0a, at - 1);
  return at + 1;
}
