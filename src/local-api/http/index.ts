/** The HTTPS server of the API: parses requests, authorizes them and encodes responses. */
export { ApiServer, type ListenOptions } from './api-server.ts';
export type {
  ApiBackend,
  ApiServerDeps,
  AuthorizationResult,
  ClientCertificate,
  ClientInfo,
  DocumentRequest,
  PlainResponse,
  PublishedDocuments,
  RequestSecurity,
  ResourceLookup,
  StreamCall,
  StreamProxy,
} from './server-deps.ts';
