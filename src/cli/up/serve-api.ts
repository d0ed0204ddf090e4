import { hostname } from 'node:os';
import type { PrintStatus } from '../command.ts';
import type { UpApi } from './up-api.ts';
import type { UpKubelet } from './up-kubelet.ts';

/**
 * A resource that is being opened. It is closed after it has opened, even if its waiter is aborted.
 */
export class PendingOpen<T extends AsyncDisposable | undefined> implements AsyncDisposable {
  readonly opened: Promise<T>;

  constructor(here: Promise<T>) {
    this.opened = here;
    here.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await this.opened.catch(() => undefined);
    await opened?.[Symbol.asyncDispose]();
  }
}

/** Prints how to use the API once the node is ready. */
export async function serveApi(
  api: UpApi,
  kubelet: UpKubelet,
  say: PrintStatus,
  ready: () => void,
  signal: AbortSignal,
): Promise<void> {
  const running = api.run(signal);
  const { url, kubeconfig } = api.endpoints;
  if (api.movedAside !== undefined)
    say('api', `starts empty; the previous objects are saved in ${api.movedAside}`);
  say('api', `answers at ${url}, its kubeconfig is ${kubeconfig}`);
  const told = Promise.all([api.nodeReady(signal), kubelet.reachable(signal)]).then(() => {
    say('node', `${hostname().toLowerCase()} is Ready`);
    for (const words of exampleCommands) say('try', `kubectl --kubeconfig ${kubeconfig} ${words}`);
    ready();
  });
  await Promise.all([running, told.catch((error) => (signal.aborted ? undefined : Promise.reject(error)))]);
}

const exampleCommands = [
  'get nodes',
  'run hello --image=localhost/kubeling/busybox:1 -- sleep 600',
  'get pods -w',
] as const;
