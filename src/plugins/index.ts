/** Plugins of the node that run in processes of their own: how they are found, asked who they are, and let go. */
export { hostPluginHost, type PluginChannel, type PluginHost, type PluginSocket } from './plugin-host.ts';
export {
  type Plugin,
  type PluginHandler,
  PluginRegistry,
  type PluginRegistryDeps,
} from './plugin-registry.ts';
