import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { networkName } from '../../src/containerd/index.ts';
import { selfCheckLabel } from '../../src/runtime/index.ts';

import { eventually, type KubelingNode } from '../kubeling-node.ts';
import {
  compareSnapshots,
  listSnapshot,
  type MachineSnapshot,
  mentioning,
  takeSnapshot,
} from '../machine-snapshot.ts';

const signal = new AbortController().signal;

const shimCommand = /containerd-shim-runc-v2 -namespace k8s\.io -id (\w+) -address (\S+)/;

/** Finds leftovers of pods on a running node by comparing it with its state before any pod ran. */
export class Leftovers {
  readonly #node: KubelingNode;
  readonly #before: MachineSnapshot;

  /**
   * Records the state; must be called while the node has no pods. Shared state of the node, for
   * example the QoS cgroups, exists once the node is ready.
   */
  static async before(node: KubelingNode): Promise<Leftovers> {
    const ready = async () => ((await node.get('/readyz')) === 'ok' ? true : undefined);
    await eventually('the node to be ready for pods', ready);
    return new Leftovers(node, await takeSnapshot());
  }

  private constructor(node: KubelingNode, before: MachineSnapshot) {
    this.#node = node;
    this.#before = before;
  }

  /** Returns one line for each leftover; `words` are additional IDs that identify the pods. */
  async find(words: readonly string[]): Promise<readonly string[]> {
    const { dataDir } = this.#node;
    const all = [dataDir, networkName(dataDir), ...words];
    const { added } = compareSnapshots(this.#before, mentioning(await takeSnapshot(), all));
    const processes = await this.#withoutForgotten(added.processes);
    return [
      ...(await this.#inRuntime()),
      ...(await this.#inFiles()),
      ...listSnapshot({ ...added, processes }),
    ];
  }

  /**
   * Excludes shims that containerd has lost: if the CRI client is killed while containerd waits for
   * a new shim, containerd drops the sandbox but leaves the shim process running, and its API does
   * not list the shim. The log of containerd contains the shim's socket.
   */
  async #withoutForgotten(processes: readonly string[]): Promise<readonly string[]> {
    if (!processes.some((line) => shimCommand.test(line))) return processes;
    const log = await readFile(join(this.#node.dataDir, 'containerd', 'containerd.log'), 'utf8');
    return processes.filter((line) => {
      const [, id = '', address = ''] = shimCommand.exec(line) ?? [];
      const socket = createHash('sha256')
        .update(join(address, 'k8s.io', id))
        .digest('hex');
      return (
        id === '' || !log.includes(`failed to start shim: start failed: unix:///run/containerd/s/${socket}`)
      );
    });
  }

  async #inRuntime(): Promise<readonly string[]> {
    const { cri } = this.#node;
    const { items } = await cri.listPodSandbox({}, signal);
    const { containers } = await cri.listContainers({}, signal);
    return [
      ...items.filter(({ labels }) => labels[selfCheckLabel] === undefined).map(({ id }) => `sandbox: ${id}`),
      ...containers
        .filter(({ labels }) => 'io.kubernetes.pod.uid' in labels)
        .map(({ id }) => `container: ${id}`),
    ];
  }

  async #inFiles(): Promise<readonly string[]> {
    const { dataDir } = this.#node;
    const network = networkName(dataDir);
    const places = [
      join(dataDir, 'kubelet', 'pods'),
      join(dataDir, 'logs'),
      join(dataDir, 'logs', 'containers'),
      join(dataDir, 'containerd', 'cni', 'ipam', network),
      join('/sys/class/net', network, 'brif'),
    ];
    const found = await Promise.all(places.map((place) => readdir(place).catch(() => [])));
    const own = new Set(['containers', 'last_reserved_ip.0', 'lock']);
    return found.flatMap((names, index) =>
      names.filter((name) => !own.has(name)).map((name) => `file: ${join(places[index] ?? '', name)}`),
    );
  }
}
