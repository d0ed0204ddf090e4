/**
 * Runs the embedded API in a separate process whose event loop is monitored. The parent process
 * controls it by messages.
 */
import { join } from 'node:path';
import { collectLogs, realClock, systemRandom, Verbosity } from '../../src/lib/index.ts';
import { type OpenLocalApi, openLocalApi } from '../../src/local-api/index.ts';
import { createCatalogue } from '../../src/local-api/registry/catalogue.ts';
import { LoopMonitor } from './loop-monitor.ts';

export interface ServerQuestion {
  readonly id: number;
  readonly ask: 'hold' | 'memory' | 'kept' | 'paths' | 'errors' | 'stop';
}

export interface ServerAnswers {
  /** The duration in milliseconds of the longest turn of the event loop since the last request. */
  hold: number;
  memory: { readonly heldBytes: number; readonly residentBytes: number };
  /** Each stored object and its resource version: enough to check that all exist. */
  kept: readonly (readonly [string, string])[];
  /**
   * The API paths of all objects that requests have created, without the objects that the server
   * creates itself.
   */
  paths: readonly string[];
  errors: readonly string[];
  stop: null;
}

const [directory = ''] = process.argv.slice(2);
const logs = collectLogs(realClock(), new Verbosity(0));
const stop = new AbortController();
const api = await openLocalApi(
  {
    directory: join(directory, 'data'),
    adminKubeconfig: join(directory, 'admin.kubeconfig'),
    listen: { host: '127.0.0.1', port: 0 },
    nodeName: 'node',
    // Events are deleted after a short time, so that the memory of the server can be compared
    // during the run.
    history: { limit: 1_000, ms: 10_000 },
    hostnames: () => [],
    addresses: () => [],
    kubeletAt: () => undefined,
    exposeMetrics: async () => 'up 1\n',
    version: { kubernetes: '1.36.4', own: '0.0.0' },
    clock: realClock(),
    random: systemRandom(),
    logger: logs.logger,
  },
  stop.signal,
);
const running = api.run(stop.signal).catch(() => {});
const monitor = new LoopMonitor();

process.on('message', ({ id, ask }: ServerQuestion) => {
  // Waits for several turns of the event loop, so that pending work of the last request is included
  // before the reply is sent.
  setTimeout(() => void answer(id, ask), 3);
});
process.on('disconnect', () => process.exit());
process.send?.({ id: 0, answer: api.url });

async function answer(id: number, ask: ServerQuestion['ask']): Promise<void> {
  const found = await answerOf(ask);
  process.send?.({ id, answer: found });
  if (ask === 'stop') process.disconnect?.();
}

async function answerOf(ask: ServerQuestion['ask']): Promise<ServerAnswers[typeof ask]> {
  switch (ask) {
    case 'hold':
      return monitor.takeLongestMs();
    case 'memory': {
      (globalThis as { gc?: () => void }).gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      return { heldBytes: heapUsed, residentBytes: rss };
    }
    case 'kept':
      return kept(api);
    case 'paths':
      return paths(api);
    case 'errors':
      return [...logs.records]
        .filter(({ severity }) => severity === 'error')
        .map((record) => JSON.stringify(record).slice(0, 2_000));
    case 'stop':
      monitor[Symbol.dispose]();
      stop.abort(new Error('the round is over'));
      await running;
      await api[Symbol.asyncDispose]();
      return null;
  }
}

function kept({ objects }: OpenLocalApi): readonly (readonly [string, string])[] {
  const stored = createCatalogue({}).all.filter((entry) => entry.storage === 'stored');
  return stored.flatMap(({ resource }) =>
    objects
      .all(resource)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(
        ({ metadata }) =>
          [
            `${resource.plural} ${metadata.namespace ?? ''}/${metadata.name}`,
            metadata.resourceVersion,
          ] as const,
      ),
  );
}

/** Kinds of objects that are never deleted, because without them all later requests would fail. */
const neededKinds: ReadonlySet<string> = new Set(['namespaces', 'nodes']);

/**
 * The paths of all objects, except objects of the kinds that are never deleted and objects that the
 * server creates again.
 */
function paths({ objects }: OpenLocalApi): readonly string[] {
  const stored = createCatalogue({}).all.filter(
    ({ storage, resource }) => storage === 'stored' && !neededKinds.has(resource.plural),
  );
  return stored.flatMap(({ resource }) => {
    const { group, version, plural } = resource;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const created = objects.all(resource).filter(({ metadata }) => metadata.namespace !== 'kube-node-lease');
    return created.map(({ metadata: { namespace, name } }) => {
      const place = namespace === undefined || namespace === '' ? root : `${root}/namespaces/${namespace}`;
      return `${place}/${plural}/${encodeURIComponent(name ?? '')}`;
    });
  });
}
