import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../lib/index.ts';
import { GrpcError } from '../protocols/grpc/index.ts';
import type { PluginChannel, PluginSocket } from './plugin-host.ts';
import { type Plugin, PluginRegistry } from './plugin-registry.ts';

const directory = '/root/plugins_registry';
const at = `${directory}/d.sock`;

class World {
  readonly clock = new VirtualClock();
  readonly history: string[] = [];
  readonly end = new AbortController();
  readonly logs = collectLogs(this.clock);
  sockets: PluginSocket[] = [{ path: at, identity: '1' }];
  info = { type: 'CSIPlugin', name: 'd.example', endpoint: '', supportedVersions: ['1.0.0'] };
  asking: Error | undefined;
  telling: Error | undefined;
  registering: Error | undefined;
  #hint = () => {};
  readonly registry = new PluginRegistry({
    directory,
    host: {
      prepare: async () => {},
      sockets: async () => this.sockets,
      watch: (_directory, hint) => {
        this.#hint = hint;
        return { [Symbol.dispose]: () => {} };
      },
      open: () => this.#channel(),
    },
    handlers: new Map([
      [
        'CSIPlugin',
        {
          register: async ({ name, endpoint }: Plugin) => {
            if (this.registering !== undefined) throw this.registering;
            this.history.push(`+${name} ${endpoint}`);
          },
          deregister: ({ name }: Plugin) => void this.history.push(`-${name}`),
        },
      ],
    ]),
    clock: this.clock,
    random: seededRandom(1),
    logger: this.logs.logger,
  });
  readonly running = this.registry.run(this.end.signal).catch(() => {});

  async hint(): Promise<void> {
    this.#hint();
    await this.clock.advance(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort(new Error('over'));
    await this.running;
  }

  #channel(): PluginChannel {
    const calls = {
      getInfo: async () => {
        if (this.asking !== undefined) throw this.asking;
        return this.info;
      },
      notifyRegistrationStatus: async (status: { pluginRegistered: boolean; error?: string }) => {
        if (this.telling !== undefined) throw this.telling;
        this.history.push(status.pluginRegistered ? 'told yes' : `told no: ${status.error}`);
        return {};
      },
    };
    return { client: () => calls as never, close: () => {} };
  }
}

describe('the registry of plugins', () => {
  it('gets the info of a plugin, registers it and notifies it once', async () => {
    await using world = new World();
    await world.clock.advance(60_000);
    assert.deepEqual(world.history, [`+d.example ${at}`, 'told yes']);
    assert.deepEqual(world.registry.names, ['d.example']);
  });

  it('uses the endpoint a plugin returns', async () => {
    await using world = new World();
    world.info.endpoint = '/csi/csi.sock';
    await world.clock.advance(0);
    assert.deepEqual(world.history[0], '+d.example /csi/csi.sock');
  });

  it('deregisters a plugin whose socket is deleted, and registers it again with a new socket', async () => {
    await using world = new World();
    await world.clock.advance(0);
    world.sockets = [{ path: at, identity: '2' }];
    await world.hint();
    assert.deepEqual(world.history.slice(2), ['-d.example', `+d.example ${at}`, 'told yes']);
    world.sockets = [];
    await world.hint();
    assert.deepEqual(world.history.slice(5), ['-d.example']);
    assert.deepEqual(world.registry.names, []);
  });

  it('deregisters a plugin that is rejected after its registration, notifies it, and retries', async () => {
    await using world = new World();
    await world.clock.advance(0);
    const plugin = { name: 'd.example', endpoint: at, versions: [] };
    world.registry.refuse({ ...plugin, endpoint: '/another' }, 'elsewhere');
    world.registry.refuse(plugin, 'elsewhere');
    world.registry.refuse(plugin, 'once is enough');
    world.registering = new Error('elsewhere');
    await world.clock.advance(400);
    assert.deepEqual(world.history.slice(2), ['-d.example', 'told no: elsewhere']);
    assert.deepEqual(world.registry.names, []);
    await world.clock.advance(200);
    assert.deepEqual(world.history.slice(4), ['told no: elsewhere']);
    world.registering = undefined;
    await world.clock.advance(10_000);
    assert.deepEqual(world.history.slice(5), [`+d.example ${at}`, 'told yes']);
  });

  it('notifies a rejected plugin of the reason, and retries with back-off', async () => {
    await using world = new World();
    world.registering = new Error('not today');
    await world.clock.advance(3_000);
    assert.deepEqual(world.history, Array(3).fill('told no: not today'));
    world.registering = undefined;
    await world.clock.advance(3_000);
    assert.deepEqual(world.history.slice(3), [`+d.example ${at}`, 'told yes']);
  });

  it('rejects a plugin of an unhandled type by its name', async () => {
    await using world = new World();
    world.info.type = 'Toaster';
    await world.clock.advance(0);
    assert.deepEqual(world.history, [
      `told no: no handler registered for plugin type: Toaster at socket ${at}`,
    ]);
  });

  it('deregisters a plugin that cannot be notified', async () => {
    await using world = new World();
    world.telling = new GrpcError('UNAVAILABLE', 'gone');
    await world.clock.advance(0);
    assert.deepEqual(world.history, [`+d.example ${at}`, '-d.example']);
    world.telling = undefined;
    await world.clock.advance(1_000);
    assert.deepEqual(world.history.slice(2), [`+d.example ${at}`, 'told yes']);
  });

  it('retries a socket without a listener every second, and logs that once', async () => {
    await using world = new World();
    world.asking = new GrpcError('UNAVAILABLE', 'connection refused');
    await world.clock.advance(30_000);
    assert.equal(world.logs.records.toArray().length, 1);
    world.asking = undefined;
    await world.clock.advance(1_000);
    assert.deepEqual(world.history, [`+d.example ${at}`, 'told yes']);
  });

  it('deregisters all plugins when it stops', async () => {
    const world = new World();
    await world.clock.advance(0);
    await world[Symbol.asyncDispose]();
    assert.deepEqual(world.history.at(-1), '-d.example');
  });
});
