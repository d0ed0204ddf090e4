export { type DialUpgrade, type UpgradeAnswer, type UpgradeTarget, upgradeDialer } from './dial-upgrade.ts';
export {
  openRemoteStreams,
  portForwardProtocol,
  type RemoteEnd,
  type RemoteStreams,
  readRemoteEnd,
  remoteCommandProtocol,
  spdyUpgradeHeaders,
} from './remote-command.ts';
export type { WantedStreams } from './stream-query.ts';
export {
  type StreamingHost,
  type StreamRoutes,
  streamRoutes,
} from './stream-routes.ts';
export type { TunnelDeps } from './tunnel.ts';
