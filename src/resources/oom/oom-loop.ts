import { join } from 'node:path';
import type { NodeJournal } from '../../journal/index.ts';
import { type Clock, describeError, type Logger } from '../../lib/index.ts';
import {
  containerFieldPath,
  type ObservedPod,
  type PodJournal,
  type PodManager,
  type PodUid,
  podUid,
} from '../../pods/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';
import type { KernelLog } from './kernel-log.ts';
import type { OomKill } from './oom-parser.ts';
import { type LogPosition, OomWatcher, type PodOom, type PositionFile } from './oom-watcher.ts';

export interface OomDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly machine: {
    readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
    readonly kernelLog?: KernelLog | undefined;
    readFile(path: string): Promise<string>;
  };
}

export interface OomParts {
  readonly node: Pick<NodeJournal, 'event'>;
  readonly journal: PodJournal;
  readonly pods: Pick<PodManager, 'getPodByUid'>;
  readonly observed: (uid: PodUid) => ObservedPod | undefined;
  readonly bootFile: string;
}

/**
 * Creates the loop that reports OOM kills; undefined on a machine without access to the kernel log.
 */
export function oomLoop(
  { rootDir }: { readonly rootDir: string },
  { machine, clock, logger }: OomDeps,
  { node, journal, pods, observed, bootFile }: OomParts,
): Readonly<Record<string, OomWatcher>> {
  const { kernelLog: log, files } = machine;
  if (log === undefined) return {};
  const watcher = new OomWatcher({
    log,
    note: positionNote(join(rootDir, 'kernel-log.json'), files, (error) =>
      logger.warn('Failed to read the kernel log position', { why: describeError(error) }),
    ),
    readBoot: () => machine.readFile(bootFile),
    clock,
    logger,
    systemOom: (kill) => node.event({ type: 'Warning', reason: 'SystemOOM', message: systemMessage(kill) }),
    podOom: (oom) => {
      const pod = pods.getPodByUid(podUid(oom.uid));
      if (pod === undefined) return;
      const name = observed(pod.metadata.uid)?.containers.find(({ id }) => id === oom.containerId)?.name;
      const fieldPath = name === undefined ? undefined : containerFieldPath(pod, name);
      journal.event(pod, {
        type: 'Warning',
        reason: 'OOMKilling',
        message: podMessage(oom, name),
        fieldPath,
      });
    },
  });
  return { 'out of memory': watcher };
}

function systemMessage({ process, pid }: OomKill): string {
  const victim = process !== '' && pid !== 0 ? `, victim process: ${process}, pid: ${pid}` : '';
  return `System OOM encountered${victim}`;
}

const limits: Readonly<Record<PodOom['limit'], string>> = {
  container: 'reached its memory limit',
  pod: 'ran out of memory as its pod reached its limit',
  node: 'ran out of memory as the node had none left for pods',
};

/**
 * Returns the event message. It is the same for each killed process of a container, so that their
 * events are combined.
 */
function podMessage({ limit, process }: PodOom, name: string | undefined): string {
  const who = name === undefined ? 'A container' : `Container ${name}`;
  return `${who} ${limits[limit]}: the kernel killed its process ${process === '' ? 'of unknown name' : process}`;
}

const mostBytes = 4_096;

function positionNote(
  path: string,
  files: OomDeps['machine']['files'],
  unreadable: (error: unknown) => void,
): PositionFile {
  return {
    async read() {
      try {
        const text = (await files.readEnd(path, mostBytes))?.toString('utf8');
        return text === undefined ? undefined : asPosition(JSON.parse(text));
      } catch (error) {
        unreadable(error);
        return undefined;
      }
    },
    write: (position) => files.replace(path, `${JSON.stringify(position)}\n`, { mode: 0o600 }),
  };
}

function asPosition(value: unknown): LogPosition | undefined {
  const { boot, sequence } = (value ?? {}) as Partial<LogPosition>;
  return typeof boot === 'string' && Number.isSafeInteger(sequence)
    ? { boot, sequence: sequence as number }
    : undefined;
}
