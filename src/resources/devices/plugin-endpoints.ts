import {
  Backoff,
  type Clock,
  cancelledError,
  describeError,
  KubelingError,
  type Logger,
  type Random,
} from '../../lib/index.ts';
import type { DeviceHost } from './device-host.ts';
import type { Device } from './device-table.ts';
import { type DeviceTable, graceMs } from './device-table.ts';
import { type PluginAddress, PluginConnection } from './plugin-connection.ts';

export interface PluginEndpointsDeps {
  readonly host: Pick<DeviceHost, 'open' | 'identity'>;
  readonly table: DeviceTable;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** A plugin has told of its devices; `before` is what was known of them. */
  readonly listed: (resource: string, before: ReadonlyMap<string, Device>) => void;
  /** What is there to be given out has become another. */
  readonly changed: () => void;
}

const again = { baseMs: 1_000, maxMs: 30_000 };
const againMs = 1_000;

/**
 * The plugins as they come and go. Each life of a plugin is told apart: the end of an earlier one never takes away what a later
 * one offers.
 */
export class PluginEndpoints {
  readonly #deps: PluginEndpointsDeps;
  readonly #end = new AbortController();
  readonly #work = new Set<Promise<void>>();

  constructor(deps: PluginEndpointsDeps) {
    this.#deps = deps;
  }

  /** Throws DEVICE_PLUGIN unless it answers; then it stands for its resource, whoever did before. */
  async connect(place: PluginAddress, signal: AbortSignal): Promise<PluginConnection> {
    const plugin = await PluginConnection.open(this.#deps, place, signal);
    this.#end.signal.throwIfAborted();
    this.#adopt(plugin);
    return plugin;
  }

  /**
   * Asks the plugin of a resource. One that makes itself known anew meanwhile has heard nothing of it: it is asked again.
   * Throws DEVICE_PLUGIN, also when there is none.
   */
  async call<Answer>(
    resource: string,
    question: (plugin: PluginConnection) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { table } = this.#deps;
    const plugin = table.plugin(resource);
    if (plugin === undefined)
      throw new KubelingError('DEVICE_PLUGIN', `endpoint ${resource} has been stopped`);
    try {
      return await question(plugin);
    } catch (error) {
      const next = table.plugin(resource);
      if (signal.aborted || !plugin.isClosed || next === undefined) throw error;
      return await question(next);
    }
  }

  /** Whoever has let it go does not expect it back. */
  disconnect(plugin: PluginConnection): void {
    plugin[Symbol.dispose]();
    this.#disconnected(plugin, 'it was let go');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(cancelledError('No plugin is asked any more'));
    for (const plugin of this.#deps.table.plugins()) plugin[Symbol.dispose]();
    await Promise.all(this.#work);
  }

  #adopt(plugin: PluginConnection): void {
    const { table, logger, changed } = this.#deps;
    table.connect(plugin)?.[Symbol.dispose]();
    logger.info('A plugin offers devices', { resource: plugin.resource, socket: plugin.socket });
    changed();
    const work = this.#run(plugin).finally(() => this.#work.delete(work));
    this.#work.add(work);
  }

  async #run(plugin: PluginConnection): Promise<void> {
    const { table, listed, changed } = this.#deps;
    const end = await plugin.follow((devices) => {
      const before = table.list(plugin, devices);
      if (before === undefined) return;
      listed(plugin.resource, before);
      changed();
    });
    plugin[Symbol.dispose]();
    if (this.#end.signal.aborted || !this.#disconnected(plugin, end)) return;
    if (end === 'lost') await this.#reconnect(plugin, this.#end.signal).catch(() => {});
  }

  #disconnected(plugin: PluginConnection, why: string): boolean {
    const { table, logger, changed } = this.#deps;
    if (!table.disconnect(plugin)) return false;
    logger.warn('A plugin offers its devices no more', { resource: plugin.resource, why });
    changed();
    return true;
  }

  /**
   * The connection broke, which need not mean that the plugin is gone. One that was started anew has another socket and makes
   * itself known; to ask it for its devices before that could take them from whom it tells them to.
   */
  async #reconnect({ resource, socket, identity }: PluginConnection, signal: AbortSignal): Promise<void> {
    const { host, table, clock, random, logger } = this.#deps;
    const backoff = new Backoff(again, random);
    const untilMs = clock.monotonicMs() + graceMs;
    while (clock.monotonicMs() < untilMs) {
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal);
      const isSame = identity !== undefined && host.identity(socket) === identity;
      if (!isSame || !table.has(resource) || table.plugin(resource) !== undefined) return;
      const plugin = await PluginConnection.open(
        this.#deps,
        { resource, socket, withinMs: againMs },
        signal,
      ).catch((error: unknown) => {
        logger.v(2)?.info('A plugin does not answer yet', { resource, because: describeError(error) });
      });
      if (plugin === undefined) continue;
      if (table.plugin(resource) === undefined) this.#adopt(plugin);
      else plugin[Symbol.dispose]();
      return;
    }
  }
}
