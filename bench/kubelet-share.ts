import { Session } from 'node:inspector/promises';

/**
 * Files of the simulated environment: in production their CPU time is spent on other machines or
 * not at all.
 */
const environment = /^(?:src\/simulator|test|bench)\/|\/memory-[a-z-]+\.ts$|\/virtual-clock\.ts$/;
/**
 * Source files under src/lib, which kubelet and simulation share: their CPU time is attributed to
 * the caller.
 */
const shared = /^src\/lib\//;
const ours = /^src\//;
const root = new URL('..', import.meta.url).href;

interface Frame {
  readonly id: number;
  readonly callFrame: { readonly url: string };
  readonly hitCount?: number | undefined;
  readonly children?: readonly number[] | undefined;
}

type Payer = 'kubelet' | 'world' | 'nobody';

/**
 * Profiles the work in this process with one sample per millisecond, and returns the share of the
 * samples that belong to the kubelet.
 */
export async function kubeletShare(work: () => Promise<void>): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 1_000 });
  await session.post('Profiler.start');
  await work();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  return shareOf(profile.nodes);
}

/**
 * Samples of code that belongs neither to the kubelet nor to the simulated environment, such as
 * garbage collection, are left out: they are assumed to be distributed like the other samples.
 */
function shareOf(nodes: readonly Frame[]): number {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const hits = { kubelet: 0, world: 0, nobody: 0 };
  const walk = ({ id, callFrame: { url }, hitCount = 0, children = [] }: Frame, above: Payer): void => {
    const payer = payerOf(url, above);
    hits[payer] += hitCount;
    for (const child of children) {
      const node = byId.get(child);
      if (node !== undefined && node.id !== id) walk(node, payer);
    }
  };
  const [root] = nodes;
  if (root !== undefined) walk(root, 'nobody');
  return hits.kubelet / Math.max(1, hits.kubelet + hits.world);
}

function payerOf(url: string, above: Payer): Payer {
  const path = url.startsWith(root) ? url.slice(root.length) : '';
  if (environment.test(path)) return 'world';
  if (!ours.test(path) || shared.test(path)) return above;
  return 'kubelet';
}
