import { posix } from 'node:path';
import type { ContainerStatus } from '../../cri/index.ts';
import { describeError, KubelingError } from '../../lib/index.ts';
import { LogDecoder } from '../logs/log-decoder.ts';
import { readContainerAnnotations, readOwner } from './labels.ts';
import type { RuntimeFiles } from './runtime-files.ts';

const maxFileBytes = 4_096;
const maxLogBytes = 2_048;
const maxLogLines = 80;
/** Room for so many lines with their stamps; a message is cut to less anyway. */
const logReadBytes = 64 << 10;
/** For runtimes that do not cut long lines into parts. */
const longLineReadBytes = 4 << 20;

export interface MessageSource {
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'readLogEnd'>;
  readonly podLogsDir: string;
}

/** What a container left to say. */
export interface TerminationMessage {
  readonly text: string;
  /** `unread` when it could not be read, or was not there yet: another attempt may tell more. */
  readonly state: 'read' | 'unread';
}

/** What an exited container left to say, appended to what the runtime says of its end. */
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

/** The last of the mounts there covers the others: a volume of the pod's choice in that place is not what is read. */
function hostPathOfMessage({ annotations, mounts }: ContainerStatus): string | undefined {
  const path = readContainerAnnotations(annotations).terminationMessagePath;
  if (path === '') return undefined;
  return mounts.findLast(({ containerPath }) => containerPath === posix.resolve('/', path))?.hostPath;
}

/**
 * The file that was made for the last words of this container and goes with it. Undefined where the container has
 * something else mounted in that place: that is not ours.
 */
export function terminationMessageFile(status: ContainerStatus): string | undefined {
  const owner = readOwner(status.labels);
  const path = hostPathOfMessage(status);
  if (owner === undefined || path === undefined) return undefined;
  const [file = '', name, kind, uid] = path.split('/').reverse();
  const isOurs = uid === owner.uid && kind === 'containers' && name === owner.containerName;
  return isOurs && /^[0-9a-f]{8}$/.test(file) ? path : undefined;
}

/** A container that could not even be started has no log. */
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

/** A container speaks through logs of its own pod only. */
function checkOwnLog({ labels, logPath }: ContainerStatus, podLogsDir: string): void {
  const owner = readOwner(labels);
  const [directory] = posix.relative(podLogsDir, logPath).split('/');
  if (owner !== undefined && directory === `${owner.namespace}_${owner.podName}_${owner.uid}`) return;
  throw new KubelingError('LOG_REFUSED', `Cannot read the log ${logPath} as it is not of this pod`);
}

type ReadLog = (maxBytes: number) => Promise<Buffer | undefined>;

/** Undefined when so little of the log does not tell: its end belongs to a line that begins earlier. */
async function shownIn(read: ReadLog, readBytes: number): Promise<Buffer | undefined> {
  const bytes = await read(readBytes);
  if (bytes === undefined) return undefined;
  const start = startOfLines(bytes, maxLogLines);
  const decoder = new LogDecoder({});
  const shown = Buffer.concat([decoder.decode(bytes.subarray(start)), decoder.endFile()]);
  const isEnough = start > 0 || bytes.length < readBytes || shown.length >= maxLogBytes;
  return isEnough || readBytes === longLineReadBytes ? shown : undefined;
}

/** Where the last so many lines of the file begin; 0 when there are no more than that. */
function startOfLines(bytes: Buffer, lines: number): number {
  let at = bytes.length - 1;
  for (let found = 0; found < lines && at > 0; found++) at = bytes.lastIndexOf(0x0a, at - 1);
  return at + 1;
}
