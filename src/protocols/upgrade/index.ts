/**
 * HTTP upgrades of clients, relayed byte for byte to a backend or served by this process as
 * WebSockets.
 */
export { bearerProtocolPrefix, forwardedHeaders, headerPairs } from './headers.ts';
export { type RelayOptions, relay } from './relay.ts';
export {
  type BackendResponse,
  type GrantedUpgrade,
  sendRequest,
  sendWithConnectDeadline,
} from './request.ts';
export { tunnelUpgrade, type UpgradingClient } from './tunnel.ts';
export { serveWebSocket, type WebSocketSession } from './websocket-session.ts';
