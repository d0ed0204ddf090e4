import { type Clock, describeError, type Logger, LruMap, untilAborted } from '../../lib/index.ts';
import { type KernelLog, type KernelLogReader, type KernelRecord, parseRecord } from './kernel-log.ts';
import { containerAt, type OomKill, OomParser } from './oom-parser.ts';

/** The read position in the kernel log of one boot. */
export interface LogPosition {
  readonly boot: string;
  readonly sequence: number;
}

/** The checkpoint file of the read position. */
export interface PositionFile {
  /** Reads the position; undefined if the file is missing or unreadable. */
  read(): Promise<LogPosition | undefined>;
  write(position: LogPosition): Promise<void>;
}

export interface PodOom {
  readonly uid: string;
  readonly containerId: string;
  readonly process: string;
  /** Whether the memory limit of the container, of the pod or of the node was reached. */
  readonly limit: 'container' | 'pod' | 'node';
}

export interface OomWatcherDeps {
  readonly log: KernelLog;
  readonly note: PositionFile;
  /** Returns the ID of the current boot. */
  readonly readBoot: () => Promise<string>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called for an OOM kill that happened because the complete machine was out of memory. */
  readonly systemOom: (kill: OomKill) => void;
  readonly podOom: (oom: PodOom) => void;
}

const lookMs = 2_000;
/** The number of kernel log records to read before yielding. */
const burst = 256;
/** The interval in which OOM kills of one container are reported only once. */
const quietMs = 60_000;
const mostContainers = 1_000;

/**
 * Reports OOM kills from the kernel log. Continues at the persisted position, so that no kill is
 * reported twice or lost across a restart.
 */
export class OomWatcher {
  readonly #deps: OomWatcherDeps;
  readonly #parser = new OomParser();
  readonly #lastReportedMs = new LruMap<string, number>({ capacity: mostContainers });

  constructor(deps: OomWatcherDeps) {
    this.#deps = deps;
  }

  /**
   * Reports OOM kills until the signal is aborted. If the kernel log is unreadable, logs that once
   * and reports nothing.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { log, logger } = this.#deps;
    let opened: KernelLogReader;
    try {
      opened = log.open();
    } catch (error) {
      logger.warn('Failed to read the kernel log; OOM kills are not reported', {
        why: describeError(error),
      });
      return await untilAborted(signal).catch(() => {});
    }
    using reader = opened;
    await this.#follow(reader, signal);
  }

  async #follow(reader: KernelLogReader, signal: AbortSignal): Promise<void> {
    const { clock, note, readBoot } = this.#deps;
    const boot = (await readBoot().catch(() => '')).trim();
    const before = await note.read();
    const known = before?.boot === boot ? before.sequence : undefined;
    // Records from before the first start of the kubelet are skipped.
    let past = known === undefined;
    let sequence = known ?? -1;
    while (!signal.aborted) {
      const { records, more } = nextRecords(reader);
      const news = records.filter((record) => record.sequence > sequence);
      sequence = news.at(-1)?.sequence ?? sequence;
      const kills = past ? [] : this.#killsIn(news);
      for (const kill of kills) this.#report(kill);
      if (kills.length > 0 || (past && !more)) await this.#savePosition({ boot, sequence });
      past &&= more;
      await clock.sleep(more ? 0 : lookMs, signal).catch(() => {});
    }
  }

  #killsIn(records: readonly KernelRecord[]): readonly OomKill[] {
    return records.flatMap(({ from, message }) =>
      from === 'kernel' ? (this.#parser.take(message) ?? []) : [],
    );
  }

  #report(kill: OomKill): void {
    if (kill.cgroup === '/') this.#deps.systemOom(kill);
    const found = containerAt(kill.victimCgroup);
    if (found === undefined || !this.#isNew(found.id)) return;
    const { uid, id: containerId } = found;
    this.#deps.podOom({ uid, containerId, process: kill.process, limit: limitOf(kill, containerId) });
  }

  #isNew(containerId: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const beforeMs = this.#lastReportedMs.get(containerId);
    if (beforeMs !== undefined && nowMs - beforeMs < quietMs) return false;
    this.#lastReportedMs.set(containerId, nowMs);
    return true;
  }

  async #savePosition(position: LogPosition): Promise<void> {
    const { note, logger } = this.#deps;
    await note.write(position).catch((error: unknown) => {
      logger.error('Failed to persist the kernel log position; OOM kills may be reported again', error);
    });
  }
}

function nextRecords(reader: KernelLogReader): {
  readonly records: readonly KernelRecord[];
  readonly more: boolean;
} {
  const records: KernelRecord[] = [];
  for (let count = 0; count < burst; count++) {
    const text = reader.next();
    if (text === undefined) return { records, more: false };
    const record = parseRecord(text);
    if (record !== undefined) records.push(record);
  }
  return { records, more: true };
}

function limitOf({ cgroup }: OomKill, containerId: string): PodOom['limit'] {
  if (cgroup.includes(containerId)) return 'container';
  return /\/(?:[^/]*-)?pod[^/]+$/.test(cgroup) ? 'pod' : 'node';
}
