import { KubelingError } from '../../lib/index.ts';
import { initContainersOf, type Pod } from '../../pods/index.ts';

export interface ForwardedPort {
  /** 0 for any that is free. */
  readonly local: number;
  readonly remote: number;
}

/** `80`, `8080:80`, `:80` and `0:80` for any local port; the pod's side may be the name of a port of its containers. */
export function readForwardedPort(text: string, pod: Pod): ForwardedPort {
  const [first = '', second, ...more] = text.split(':');
  const remote = readRemote(second ?? first, pod);
  const local = second === undefined ? remote : first === '' ? 0 : readNumber(first);
  if (remote === undefined || local === undefined || more.length > 0) {
    throw new KubelingError(
      'CLI_USAGE',
      `Cannot forward ${JSON.stringify(text)} as it must be PORT, LOCAL:PORT or :PORT, with numbers from 1 to 65535 or a name of a port of the pod`,
    );
  }
  return { local, remote };
}

function readRemote(text: string, pod: Pod): number | undefined {
  const number = readNumber(text);
  if (number !== undefined) return number === 0 ? undefined : number;
  // Of those that go on running: sidecars are init containers that do.
  const sidecars = initContainersOf(pod).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const ports = [...pod.spec.containers, ...sidecars].flatMap((container) => container.ports ?? []);
  return ports.find(({ name }) => name === text)?.containerPort;
}

function readNumber(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;
}
