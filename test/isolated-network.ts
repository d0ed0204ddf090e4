import { execFileSync } from 'node:child_process';
import { whenLeftBehind } from './fakes/left-behind.ts';

let opened = 0;

/**
 * A network namespace in which a whole node runs, and a second one that acts as its only neighbour
 * machine. The node has its own loopback ports, packet filter and network sockets; those of the
 * machine are not affected.
 */
export class IsolatedNetwork implements Disposable {
  readonly nodeAddress = '198.18.0.2';
  readonly #node: string;
  readonly #neighbour: string;
  readonly #leftBehind: Disposable;

  constructor() {
    const name = `klg-net-${process.pid}-${opened++}`;
    this.#node = name;
    this.#neighbour = `${name}-n`;
    this.#leftBehind = whenLeftBehind(() => this.#remove());
    try {
      this.#create();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** The command prefix that runs a program in the node's network. */
  get node(): readonly string[] {
    return entering(`/run/netns/${this.#node}`);
  }

  /** The command prefix that runs a program on the neighbour machine. */
  get neighbour(): readonly string[] {
    return entering(`/run/netns/${this.#neighbour}`);
  }

  [Symbol.dispose](): void {
    this.#leftBehind[Symbol.dispose]();
    this.#remove();
  }

  #create(): void {
    for (const name of [this.#node, this.#neighbour]) {
      execFileSync('ip', ['netns', 'add', name]);
      execFileSync('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
    }
    const peer = ['type', 'veth', 'peer', 'name', 'net0', 'netns', this.#neighbour];
    execFileSync('ip', ['-n', this.#node, 'link', 'add', 'net0', ...peer]);
    for (const [name, address] of [
      [this.#node, this.nodeAddress],
      [this.#neighbour, '198.18.0.1'],
    ] as const) {
      execFileSync('ip', ['-n', name, 'address', 'add', `${address}/24`, 'dev', 'net0']);
      execFileSync('ip', ['-n', name, 'link', 'set', 'net0', 'up']);
    }
    execFileSync('ip', ['-n', this.#node, 'route', 'add', 'default', 'via', '198.18.0.1']);
  }

  /** Deletes both namespaces, which also removes the pair of interfaces that connects them. */
  #remove(): void {
    for (const name of [this.#node, this.#neighbour]) {
      try {
        execFileSync('ip', ['netns', 'delete', name], { stdio: 'ignore' });
      } catch {
        // Deleting a namespace that was not created fails, which is ignored.
      }
    }
  }
}

/** The command prefix that runs a program in the network of a process. */
export function inNetworkOf(pid: number): readonly string[] {
  return entering(`/proc/${pid}/ns/net`);
}

/**
 * The command prefix that enters only a network namespace: the program sees the files of the
 * machine, except for the network files in /proc.
 */
function entering(path: string): readonly string[] {
  return ['nsenter', `--net=${path}`];
}

/**
 * Routes 127.0.0.0/8 in the network of a pod or another machine to a gateway instead of the local
 * loopback. A process with CAP_NET_RAW can achieve the same with packets it crafts.
 */
export function routeLoopbackVia(gateway: string, device: string, inside: readonly string[]): void {
  const [file = '', ...words] = inside;
  const script = [
    'for each in all default "$2"; do echo 1 > "/proc/sys/net/ipv4/conf/$each/route_localnet"; done',
    'ip address delete 127.0.0.1/8 dev lo',
    'ip route add 127.0.0.0/8 via "$1" dev "$2"',
  ].join(' && ');
  execFileSync(file, [...words, 'sh', '-c', script, 'sh', gateway, device]);
}
