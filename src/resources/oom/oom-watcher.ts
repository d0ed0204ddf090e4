import { type Clock, describeError, type Logger, LruMap, untilAborted } from '../../lib/index.ts';
import { type KernelLog, type KernelLogReader, type KernelRecord, parseRecord } from './kernel-log.ts';
import { containerAt, type OomKill, OomParser } from './oom-parser.ts';

/** How far the log has been read, in which run of the machine. */
export interface LogPosition {
  readonly boot: string;
  readonly sequence: number;
}

/** Where the position outlives the process. */
export interface PositionFile {
  /** Undefined when there is none, or none that can be read. */
  read(): Promise<LogPosition | undefined>;
  write(position: LogPosition): Promise<void>;
}

export interface PodOom {
  readonly uid: string;
  readonly containerId: string;
  readonly process: string;
  /** Whose memory had run out. */
  readonly limit: 'container' | 'pod' | 'node';
}

export interface OomWatcherDeps {
  readonly log: KernelLog;
  readonly note: PositionFile;
  /** Which run of the machine this is. */
  readonly readBoot: () => Promise<string>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The whole machine was out of memory. */
  readonly systemOom: (kill: OomKill) => void;
  readonly podOom: (oom: PodOom) => void;
}

const lookMs = 2_000;
/** How much of a long log is read before others have their turn. */
const burst = 256;
/** One container may lose many processes at once, or one after the other; that is one piece of news. */
const quietMs = 60_000;
const mostContainers = 1_000;

/**
 * Tells who ran out of memory, from the kernel's log. Goes on where the last one stopped: what was told is not told
 * again, and what happened in between is not lost.
 */
export class OomWatcher {
  readonly #deps: OomWatcherDeps;
  readonly #parser = new OomParser();
  readonly #lastReportedMs = new LruMap<string, number>({ capacity: mostContainers });

  constructor(deps: OomWatcherDeps) {
    this.#deps = deps;
  }

  /** Ends with the signal. A log that cannot be read is said once, and nothing is told. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, logger } = this.#deps;
    let opened: KernelLogReader;
    try {
      opened = log.open();
    } catch (error) {
      logger.warn('Cannot read the log of the kernel: nobody is told when the machine runs out of memory', {
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
    // What was said before anybody watched is history.
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
    if (found === undefined || !this.#isNews(found.id)) return;
    const { uid, id: containerId } = found;
    this.#deps.podOom({ uid, containerId, process: kill.process, limit: limitOf(kill, containerId) });
  }

  #isNews(containerId: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const beforeMs = this.#lastReportedMs.get(containerId);
    if (beforeMs !== undefined && nowMs - beforeMs < quietMs) return false;
    this.#lastReportedMs.set(containerId, nowMs);
    return true;
  }

  async #savePosition(position: LogPosition): Promise<void> {
    const { note, logger } = this.#deps;
    await note.write(position).catch((error: unknown) => {
      logger.error('Cannot note how far the log of the kernel was read: news may be told again', error);
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
