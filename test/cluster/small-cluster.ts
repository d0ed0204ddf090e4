import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../src/kinds/index.ts';
import { ApiDoor } from './api-door.ts';
import { AuditLog } from './audit-log.ts';
import { ClusterNode, type ClusterNodeOptions } from './cluster-node.ts';
import { isReady, podIs } from './cluster-pods.ts';
import { ControlPlane } from './control-plane.ts';
import type { EmbeddedOptions } from './embedded-backend.ts';
import { patiently } from './patiently.ts';
import type { PlaneFlags } from './plane-parts.ts';
import { clusterAssets } from './programs.ts';

const toldCharacters = 6_000;

interface Parts {
  readonly dir: string;
  readonly plane: ControlPlane;
  readonly node: ClusterNode;
  readonly door: ApiDoor;
  readonly audit: AuditLog;
  readonly readyAfterMs: number;
}

/**
 * A control plane with one Ready node, for the tests of one file. The node reaches its API server
 * only through a proxy; the test connects directly.
 */
export class SmallCluster implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly node: ClusterNode;
  readonly door: ApiDoor;
  /** The audit log with the node's requests to the API server. */
  readonly audit: AuditLog;
  /** The time from the start of the node until its Node object was Ready. */
  readonly readyAfterMs: number;
  readonly #dir: string;

  /** Starts a real control plane with one node. */
  static async open(flags: PlaneFlags = {}, options: ClusterNodeOptions = {}): Promise<SmallCluster> {
    return await SmallCluster.#open(options, ({ flags: audited }) =>
      ControlPlane.open(clusterAssets(), {
        ...flags,
        apiServerFlags: [...audited, ...(flags.apiServerFlags ?? [])],
      }),
    );
  }

  /** Starts kubeling's embedded API with one node. */
  static async openEmbedded(
    options: EmbeddedOptions = {},
    ofNode: ClusterNodeOptions = {},
  ): Promise<SmallCluster> {
    return await SmallCluster.#open(ofNode, ({ file: auditFile }) =>
      ControlPlane.openEmbedded({ ...options, auditFile }),
    );
  }

  static async #open(
    options: ClusterNodeOptions,
    openPlane: (audit: AuditLog) => Promise<ControlPlane>,
  ): Promise<SmallCluster> {
    await using opened = new AsyncDisposableStack();
    const dir = await mkdtemp(join(tmpdir(), 'klg-small-'));
    opened.defer(() => rm(dir, { recursive: true, force: true }));
    const audit = await AuditLog.prepare(dir);
    const plane = opened.use(await openPlane(audit));
    const door = opened.use(await ApiDoor.open(plane.serverUrl));
    const node = opened.use(await ClusterNode.open(plane, { server: door.url, ...options }));
    const startMs = performance.now();
    await node.start();
    await node.ready();
    const readyAfterMs = performance.now() - startMs;
    opened.move();
    return new SmallCluster({ dir, plane, node, door, audit, readyAfterMs });
  }

  private constructor({ dir, plane, node, door, audit, readyAfterMs }: Parts) {
    this.plane = plane;
    this.node = node;
    this.door = door;
    this.audit = audit;
    this.readyAfterMs = readyAfterMs;
    this.#dir = dir;
  }

  /** Returns the end of the node's output, which timeout errors contain. */
  readonly told = (): string => this.node.out.slice(-toldCharacters);

  async podIs(name: string, what: string, wanted: (pod: Pod) => boolean): Promise<Pod> {
    return await podIs(this.plane, name, what, wanted, this.told);
  }

  async ready(name: string): Promise<Pod> {
    return await this.podIs(name, 'Ready', isReady);
  }

  async phase(name: string, phase: string): Promise<Pod> {
    return await this.podIs(name, phase, ({ status }) => status?.phase === phase);
  }

  /** Returns the pods with a label such as `app=x`. */
  async podsWith(label: string): Promise<readonly Pod[]> {
    const path = `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent(label)}`;
    return (await this.plane.get<{ items: readonly Pod[] }>(path))?.items ?? [];
  }

  /** Waits until the object at a path meets the condition. */
  async objectIs<T>(
    path: string,
    what: string,
    wanted: (object: T) => boolean,
    limitMs?: number,
  ): Promise<T> {
    let last: T | undefined;
    return await patiently(
      `${path} to be ${what}`,
      async () => {
        last = await this.plane.get<T>(path);
        return last !== undefined && wanted(last) ? last : undefined;
      },
      () => `${JSON.stringify(last, undefined, 1)}\n${this.told()}`,
      limitMs,
    );
  }

  async noContainersOf(name: string): Promise<void> {
    await patiently(
      `no container to be left of ${name}`,
      async () => ((await this.node.containersOf(name)).length === 0 ? true : undefined),
      this.told,
    );
  }

  /** Removes the cluster; fails if the node has left anything on the machine. */
  async [Symbol.asyncDispose](): Promise<void> {
    await using closed = new AsyncDisposableStack();
    closed.defer(() => rm(this.#dir, { recursive: true, force: true }));
    closed.use(this.plane);
    closed.use(this.door);
    assert.deepEqual(await this.node.leave(), [], 'the machine must be as it was before');
  }
}
