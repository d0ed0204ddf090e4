import { execFileSync } from 'node:child_process';
import { whenLeftBehind } from './fakes/left-behind.ts';

let opened = 0;

/**
 * A network namespace in which a whole node runs, and another that is its only neighbour. The node has the ports of
 * loopback, the packet filter and the network sockets for itself; those of the machine stay as they are.
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

  /** The words before a program that make it run in the node's network. */
  get node(): readonly string[] {
    return entering(`/run/netns/${this.#node}`);
  }

  /** The words before a program that make it run on another machine of the node's network. */
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

  /** Both ends of the pair of interfaces go with their namespaces. */
  #remove(): void {
    for (const name of [this.#node, this.#neighbour]) {
      try {
        execFileSync('ip', ['netns', 'delete', name], { stdio: 'ignore' });
      } catch {
        // It was not created.
      }
    }
  }
}

/** The words before a program that make it run in the network of a process. */
export function inNetworkOf(pid: number): readonly string[] {
  return entering(`/proc/${pid}/ns/net`);
}

/** Only the network: files stay those of the machine, and files of the network in /proc are those of the namespace. */
function entering(path: string): readonly string[] {
  return ['nsenter', `--net=${path}`];
}

/**
 * Sends what is for 127.0.0.0/8 in the network of a pod, or of another machine, to a gateway instead of its own loopback,
 * as a process with CAP_NET_RAW does with packets that it makes itself.
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
