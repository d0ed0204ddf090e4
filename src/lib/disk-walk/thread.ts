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
 * Counts files for the main thread, in a thread of its own because its system calls block. Several
 * trees are counted concurrently under one rate limit. This file has few imports, because every
 * imported module is in memory twice.
 */
class WalkServer {
  readonly #port: MessagePort;
  readonly #rateLimit = new RateLimit({ monotonicMs, sleep, perSecond, burst });
  readonly #mountPoints = mountPointsCache(monotonicMs);
  readonly #smallTrees = new SmallTreeCounter(() => Date.now());
  readonly #known = new Set<number>();
  readonly #stopped = new Set<number>();
  readonly #waiting: CountRequest[] = [];
  readonly #running = new Set<number>();
  /** The number of entries that were counted but not yet charged to the rate limit. */
  #unspent = 0;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  receive(request: WalkRequest): void {
    if (request.do === 'ping') this.#reply({ id: 0, results: [] });
    else if (request.do === 'count') this.#add(request);
    else if (this.#known.has(request.id)) this.#stopped.add(request.id);
  }

  #add(request: CountRequest): void {
    this.#known.add(request.id);
    if (request.limitMs <= fastLimitMs) void this.#countTrees(request);
    else {
      this.#waiting.push(request);
      this.#startNext();
    }
  }

  /**
   * Starts the next slow request if fewer than the maximum number run. Fast requests start when
   * they arrive and never wait for slow ones.
   */
  #startNext(): void {
    const request = this.#running.size < maxSlowRequests ? this.#waiting.shift() : undefined;
    if (request === undefined) return;
    this.#running.add(request.id);
    void this.#countTrees(request);
  }

  async #countTrees({ id, trees, limitMs }: CountRequest): Promise<void> {
    const endMs = monotonicMs() + limitMs;
    const results: TreeResult[] = [];
    for (const tree of trees) {
      results.push(await this.#count(tree, id, endMs));
      if (this.#unspent <= entriesPerRest) continue;
      const spent = this.#unspent;
      this.#unspent = 0;
      await this.#rateLimit.spend(spent);
    }
    for (const ids of [this.#known, this.#running, this.#stopped]) ids.delete(id);
    this.#reply({ id, results });
    this.#startNext();
  }

  async #count(tree: Tree, id: number, endMs: number): Promise<TreeResult> {
    try {
      const found = tree.space === 'skipped' ? {} : spaceAndQuota(tree.path);
      const small = this.#smallTrees.count(tree, this.#mountPoints);
      if (small === 'gone') return { kind: small };
      if (small !== undefined) {
        this.#unspent += small.inodesUsed;
        return { kind: 'counted', ...found, usage: small };
      }
      const rest = async (number: number) => {
        await this.#rateLimit.spend(number);
        return this.#stopped.has(id) || monotonicMs() > endMs ? 'stop' : 'continue';
      };
      const mountPoints = () => this.#mountPoints().all;
      return { kind: 'counted', ...found, usage: await walkTree(tree, { mountPoints, rest }) };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === 'ENOENT' ? { kind: 'gone' } : { kind: 'failed', message };
    }
  }

  /** Sends the reply as text, because transferring many small objects would cost more. */
  #reply(walkReply: WalkReply): void {
    this.#port.postMessage(JSON.stringify(walkReply));
  }
}

function monotonicMs(): number {
  return performance.now();
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
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
  const server = new WalkServer(parentPort);
  parentPort.on('message', (request: WalkRequest) => server.receive(request));
}
