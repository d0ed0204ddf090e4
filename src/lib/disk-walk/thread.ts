import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { MountPoints, parseMountinfo } from '../mountinfo.ts';
import type { Tree, TreeResult, WalkReply, WalkRequest } from './messages.ts';
import { SmallTreeCounter } from './small-trees.ts';
import { spaceAndQuota } from './space.ts';
import { walkTree } from './walk.ts';

const perSecond = 10_000;
const burst = 4_000;
/** The lowest CPU priority on Linux (nice 19). */
const lowestPriority = 19;
const mountsMaxAgeMs = 1_000;
const fastLimitMs = 30_000;
const entriesPerRest = 256;
/**
 * The maximum number of concurrent slow requests (with a time limit above `fastLimitMs`), because
 * each may use some memory.
 */
const maxSlowRequests = 4;

type CountRequest = Extract<WalkRequest, { readonly do: 'count' }>;

/**
 * The main function of the thread that counts files. Its system calls block, so it must not run in
 * the main thread. Several trees are counted concurrently under one rate limit. It has few imports,
 * because every imported module is in memory twice.
 */
function serveWalks(port: MessagePort): void {
  const monotonicMs = () => performance.now();
  const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
  const rateLimit = new RateLimit({ monotonicMs, sleep, perSecond, burst });
  const mountPoints = mountPointsCache(monotonicMs);
  const fewFiles = new SmallTreeCounter(() => Date.now());
  const known = new Set<number>();
  const stopped = new Set<number>();
  const waiting: CountRequest[] = [];
  const running = new Set<number>();
  /** The number of entries that were counted but not yet charged to the rate limit. */
  let unspent = 0;

  /** Sends the reply as text, because transferring many small objects would cost more. */
  const reply = (walkReply: WalkReply) => port.postMessage(JSON.stringify(walkReply));

  async function count(tree: Tree, id: number, endMs: number): Promise<TreeResult> {
    try {
      const found = tree.space === 'skipped' ? {} : spaceAndQuota(tree.path);
      const few = fewFiles.count(tree, mountPoints);
      if (few === 'gone') return { kind: few };
      if (few !== undefined) {
        unspent += few.inodesUsed;
        return { kind: 'counted', ...found, usage: few };
      }
      const rest = async (number: number) => {
        await rateLimit.spend(number);
        return stopped.has(id) || monotonicMs() > endMs ? 'stop' : 'continue';
      };
      return {
        kind: 'counted',
        ...found,
        usage: await walkTree(tree, { mountPoints: () => mountPoints().all, rest }),
      };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === 'ENOENT' ? { kind: 'gone' } : { kind: 'failed', message };
    }
  }

  async function countTrees({ id, trees, limitMs }: CountRequest): Promise<void> {
    const endMs = monotonicMs() + limitMs;
    const results: TreeResult[] = [];
    for (const tree of trees) {
      results.push(await count(tree, id, endMs));
      if (unspent <= entriesPerRest) continue;
      const spent = unspent;
      unspent = 0;
      await rateLimit.spend(spent);
    }
    for (const ids of [known, running, stopped]) ids.delete(id);
    reply({ id, results: results });
    next();
  }

  /**
   * Starts the next slow request if fewer than the maximum number run. Fast requests start when
   * they arrive and never wait for slow ones.
   */
  function next(): void {
    const request = running.size < maxSlowRequests ? waiting.shift() : undefined;
    if (request === undefined) return;
    running.add(request.id);
    void countTrees(request);
  }

  port.on('message', (request: WalkRequest) => {
    if (request.do === 'ping') return reply({ id: 0, results: [] });
    if (request.do === 'stop') return void (known.has(request.id) && stopped.add(request.id));
    known.add(request.id);
    if (request.limitMs <= fastLimitMs) void countTrees(request);
    else {
      waiting.push(request);
      next();
    }
  });
}

function mountPointsCache(monotonicMs: () => number): () => MountPoints {
  let last: { readonly atMs: number; readonly text: string; readonly points: MountPoints } | undefined;
  return () => {
    const atMs = monotonicMs();
    if (last !== undefined && atMs - last.atMs < mountsMaxAgeMs) return last.points;
    const text = readFileSync('/proc/self/mountinfo', 'utf8');
    const points =
      last?.text === text
        ? last.points
        : new MountPoints(parseMountinfo(text).map(({ mountPoint }) => mountPoint));
    last = { atMs, text, points };
    return points;
  };
}

export interface RateLimitDeps {
  readonly monotonicMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** The maximum number of entries that are counted per second. */
  readonly perSecond: number;
  /** The number of entries that may be counted without delay after an idle time. */
  readonly burst: number;
}

/** Limits all callers together to a number of entries per second. */
export class RateLimit {
  readonly #deps: RateLimitDeps;
  #left: number;
  #atMs: number;

  constructor(deps: RateLimitDeps) {
    this.#deps = deps;
    this.#left = deps.burst;
    this.#atMs = deps.monotonicMs();
  }

  /**
   * Charges the entries and resolves when they are within the limit; always yields to the event
   * loop.
   */
  async spend(calls: number): Promise<void> {
    const { perSecond, burst, monotonicMs, sleep } = this.#deps;
    const nowMs = monotonicMs();
    this.#left = Math.min(this.#left + ((nowMs - this.#atMs) * perSecond) / 1_000, burst) - calls;
    this.#atMs = nowMs;
    await sleep(this.#left >= 0 ? 0 : (-this.#left * 1_000) / perSecond);
  }
}

// Starts to serve requests only in the worker thread; other modules may import this file for its
// functions.
if (parentPort !== null && workerData === 'disk-walk') {
  try {
    // On Linux this sets the priority of the thread, not of the process.
    setPriority(lowestPriority);
  } catch {
    // Changing the priority is not permitted: the walk runs with normal priority.
  }
  serveWalks(parentPort);
}
