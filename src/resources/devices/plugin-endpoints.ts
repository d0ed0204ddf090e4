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
  /**
   * Called when a plugin has listed its devices; `before` is the previous list of the same plugin.
   */
  readonly listed: (resource: string, before: ReadonlyMap<string, Device>) => void;
  /** Called when the set of available devices has changed. */
  readonly changed: () => void;
}

const again = { baseMs: 1_000, maxMs: 30_000 };
const againMs = 1_000;

/**
 * The connections to all plugins. The end of a previous connection never removes devices of a later
 * connection.
 */
export class PluginEndpoints {
  readonly #deps: PluginEndpointsDeps;
  readonly #end = new AbortController();
  readonly #work = new Set<Promise<void>>();

  constructor(deps: PluginEndpointsDeps) {
    this.#deps = deps;
  }

  /**
   * Connects to a registered plugin, which then replaces the previous plugin of its resource.
   * Throws DEVICE_PLUGIN if the plugin does not respond.
   */
  async connect(place: PluginAddress, signal: AbortSignal): Promise<PluginConnection> {
    const plugin = await PluginConnection.open(this.#deps, place, signal);
    this.#end.signal.throwIfAborted();
    this.#adopt(plugin);
    return plugin;
  }

  /**
   * Calls the plugin of a resource, and repeats the call if the plugin has registered again during
   * the call. Throws DEVICE_PLUGIN, also if the resource has no plugin.
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

  /** A deregistered plugin is not expected to register again. */
  disconnect(plugin: PluginConnection): void {
    plugin[Symbol.dispose]();
    this.#disconnected(plugin, 'it was deregistered');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(cancelledError('Device plugins are shutting down'));
    for (const plugin of this.#deps.table.plugins()) plugin[Symbol.dispose]();
    await Promise.all(this.#work);
  }

  #adopt(plugin: PluginConnection): void {
    const { table, logger, changed } = this.#deps;
    table.connect(plugin)?.[Symbol.dispose]();
    logger.info('Device plugin connected', { resource: plugin.resource, socket: plugin.socket });
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
    logger.warn('Device plugin disconnected', { resource: plugin.resource, why });
    changed();
    return true;
  }

  /**
   * Calls ListAndWatch again after a lost connection while the same socket file exists. A restarted
   * plugin creates another socket file and registers itself; calling ListAndWatch before this
   * registration could end the stream of the registration.
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
        logger.v(2)?.info('Device plugin does not respond yet', { resource, because: describeError(error) });
      });
      if (plugin === undefined) continue;
      if (table.plugin(resource) === undefined) this.#adopt(plugin);
      else plugin[Symbol.dispose]();
      return;
    }
  }
}
