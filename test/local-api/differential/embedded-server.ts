import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectLogs, realClock, systemRandom, Verbosity } from '../../../src/lib/index.ts';
import { type LocalApiOptions, openLocalApi } from '../../../src/local-api/index.ts';
import type { Identity, Server } from './server.ts';

/**
 * The number of changes in the watch history of a resource; so low that a chapter can make a
 * resource version expire.
 */
const remembered = 60;

function optionsIn(directory: string): LocalApiOptions {
  const clock = realClock();
  return {
    directory: join(directory, 'api'),
    adminKubeconfig: join(directory, 'kubeconfig'),
    listen: { host: '127.0.0.1', port: 0 },
    nodeName: 'n1',
    hostnames: () => [],
    addresses: () => [],
    kubeletAt: () => undefined,
    version: { kubernetes: 'v1.36.4', own: '0.0.0' },
    history: { limit: remembered, ms: 300_000 },
    clock,
    random: systemRandom(),
    logger: collectLogs(clock, new Verbosity(0)).logger,
  };
}

/** Opens the embedded API with all its controllers on loopback, without a kubelet. */
export async function openEmbeddedServer(): Promise<Server> {
  await using opened = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'kubeling-differential-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const stop = new AbortController();
  const api = opened.use(await openLocalApi(optionsIn(directory), stop.signal));
  const running = api.run(stop.signal).catch(() => {});
  opened.defer(async () => {
    stop.abort(new Error('the embedded API of the test is being closed'));
    await running;
  });
  const pair = async (who: string) => {
    const pem = await readFile(join(directory, 'api', 'pki', `${who}.pem`), 'utf8');
    return { cert: pem, key: pem };
  };
  const [ca, admin, node] = [
    await readFile(api.authorityFile, 'utf8'),
    await pair('admin'),
    await pair('node'),
  ];
  const moved = opened.move();
  return {
    url: api.url,
    ca,
    identity: (who) => ({ admin, node, nobody: {} })[who],
    dropHistory: () => churn({ url: api.url, ca, admin }),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

interface Way {
  readonly url: string;
  readonly ca: string;
  readonly admin: Identity;
}

/** Writes so many changes that the watch history keeps no change made before. */
async function churn(way: Way): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'churn' } };
  const path = '/api/v1/namespaces/default/configmaps';
  await write(way, 'POST', path, object);
  for (let round = 0; round < remembered; round++)
    await write(way, 'PUT', `${path}/churn`, { ...object, data: { round: String(round) } });
}

function write({ url, ca, admin }: Way, method: string, path: string, body: object): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = { 'content-type': 'application/json' };
  const call = request(`${url}${path}`, { method, ca, ...admin, headers }, (response) => {
    response.resume().on('end', resolve).on('error', reject);
  });
  call.on('error', reject).end(JSON.stringify(body));
  return promise;
}
