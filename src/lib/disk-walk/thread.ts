import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { parseMountinfo } from '../mountinfo.ts';
import type { Tree, TreeResult, WalkReply, WalkRequest } from './messages.ts';
import { MountPoints } from './mount-points.ts';
import { SmallTreeCounter } from './small-trees.ts';
import { spaceAndQuota } from './space.ts';
import { walkTree } from './walk.ts';

const perSecond = 10_000;
const burst = 4_000;
/** Behind everything else of the machine. */
const lowestPriority = 19;
const mountsMaxAgeMs = 1_000;
const fastLimitMs = 30_000;
const entriesPerRest = 256;
/** Each may hold some memory. */
const maxSlowRequests = 4;

type CountRequest = Extract<WalkRequest, { readonly do: 'count' }>;

/**
 * The thread that counts files. Its calls wait in the kernel, which is why it is one of its own; several trees are counted
 * beside each other, under one budget. It loads next to nothing, as all it loads is there twice.
 */
export function serveWalks(port: MessagePort): void {
  const monotonicMs = () => performance.now();
  const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
  const rateLimit = new RateLimit({ monotonicMs, sleep, perSecond, burst });
  const mountPoints = mountPointsCache(monotonicMs);
  const fewFiles = new SmallTreeCounter(() => Date.now());
  const known = new Set<number>();
  const stopped = new Set<number>();
  const waiting: CountRequest[] = [];
  const running = new Set<number>();
  /** Not spent yet. */
  let unspent = 0;

  /** As text: many small objects would cost more. */
  const reply = (told: WalkReply) => port.postMessage(JSON.stringify(told));

  async function count(tree: Tree, id: number, endMs: number): Promise<TreeResult> {
    try {
      const found = tree.space === 'unwanted' ? {} : spaceAndQuota(tree.path);
      const few = fewFiles.count(tree, mountPoints);
      if (few === 'gone') return { kind: few };
      if (few !== undefined) {
        unspent += few.inodesUsed;
        return { kind: 'counted', ...found, usage: few };
      }
      const rest = async (number: number) => {
        await rateLimit.spend(number);
        return stopped.has(id) || monotonicMs() > endMs ? 'stop' : 'go-on';
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

  async function answer({ id, trees, limitMs }: CountRequest): Promise<void> {
    const endMs = monotonicMs() + limitMs;
    const answers: TreeResult[] = [];
    for (const tree of trees) {
      answers.push(await count(tree, id, endMs));
      if (unspent <= entriesPerRest) continue;
      const spent = unspent;
      unspent = 0;
      await rateLimit.spend(spent);
    }
    for (const ids of [known, running, stopped]) ids.delete(id);
    reply({ id, results: answers });
    next();
  }

  /** Those that may take long wait for each other, and nobody for them. */
  function next(): void {
    const request = running.size < maxSlowRequests ? waiting.shift() : undefined;
    if (request === undefined) return;
    running.add(request.id);
    void answer(request);
  }

  port.on('message', (request: WalkRequest) => {
    if (request.do === 'ping') return reply({ id: 0, results: [] });
    if (request.do === 'stop') return void (known.has(request.id) && stopped.add(request.id));
    known.add(request.id);
    if (request.limitMs <= fastLimitMs) void answer(request);
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
  /** Looks at files a second. */
  readonly perSecond: number;
  /** As many at once after a rest. */
  readonly burst: number;
}

/** Keeps those who share it to so much a second, all of them together. */
export class RateLimit {
  readonly #deps: RateLimitDeps;
  #left: number;
  #atMs: number;

  constructor(deps: RateLimitDeps) {
    this.#deps = deps;
    this.#left = deps.burst;
    this.#atMs = deps.monotonicMs();
  }

  /** Resolves when what was spent has been saved up again; always lets others come first. */
  async spend(looks: number): Promise<void> {
    const { perSecond, burst, monotonicMs, sleep } = this.#deps;
    const nowMs = monotonicMs();
    this.#left = Math.min(this.#left + ((nowMs - this.#atMs) * perSecond) / 1_000, burst) - looks;
    this.#atMs = nowMs;
    await sleep(this.#left >= 0 ? 0 : (-this.#left * 1_000) / perSecond);
  }
}

// Loaded by anybody else, it is only code.
if (parentPort !== null && workerData === 'disk-walk') {
  try {
    // Of this thread alone, as Linux has it.
    setPriority(lowestPriority);
  } catch {
    // Not to be had: it walks all the same.
  }
  serveWalks(parentPort);
}
