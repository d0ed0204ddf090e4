/** Plugins of the node in separate processes: their discovery, registration and removal. */
export { hostPluginHost, type PluginChannel, type PluginHost, type PluginSocket } from './plugin-host.ts';
export {
  type Plugin,
  type PluginHandler,
  PluginRegistry,
  type PluginRegistryDeps,
} from './plugin-registry.ts';
