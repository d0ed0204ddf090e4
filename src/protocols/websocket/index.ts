export { type MessagePiece, WebSocketConnection } from './connection.ts';
export { closeCodes } from './frames.ts';
export {
  acceptHeaders,
  type HandshakeRefusal,
  handshakeProblem,
  isWebSocket,
  offeredProtocols,
} from './handshake.ts';
